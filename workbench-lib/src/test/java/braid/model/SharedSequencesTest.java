package braid.model;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Divisions by work, whose ranks are a choice: each position has one rank, sequences have the
/// parts of their definition, and the work is even. Owners are read from runs and judged by plain
/// loops.
class SharedSequencesTest {
  private static final int LONGEST = 4096;

  /// Returns the rank of each position.
  private static int[] owners(AttentionSpec spec, int ranks) {
    var owners = new int[spec.sequence()];
    Arrays.fill(owners, -1);
    for (int rank = 0; rank < ranks; rank++) {
      for (var run : Tokens.of(spec, ranks, rank).runs()) {
        for (long i = 0; i < run.length(); i++) {
          int position = (int) (run.first() + i * run.step());
          assertThat(owners[position]).isEqualTo(-1);
          owners[position] = rank;
        }
      }
    }
    return owners;
  }

  private static AttentionSpec drawn(SplittableRandom random) {
    int count = 1 + random.nextInt(30);
    var ends = new int[count + 1];
    for (int i = 1; i <= count; i++) {
      // As many short ones as long ones, in octaves.
      ends[i] = ends[i - 1] + 1 + random.nextInt(LONGEST >> random.nextInt(8));
    }
    var spec = AttentionSpec.of(ends[count], 1, 8).packed(ends).layout(TokenLayout.BY_WORK);
    return switch (random.nextInt(4)) {
      case 0 -> spec;
      case 1 -> spec.causal();
      case 2 -> spec.window(1 + random.nextInt(500));
      default -> spec.causal().window(1 + random.nextInt(500));
    };
  }

  @Test
  void eachSequenceIsDividedInPartsAmongConsecutiveRanks() {
    var random = new SplittableRandom(3);
    for (int trial = 0; trial < 200; trial++) {
      var spec = drawn(random);
      int ranks = 1 + random.nextInt(12);
      var owners = owners(spec, ranks);
      for (int i = 0; i < spec.packing().sequences(); i++) {
        int start = (int) spec.packing().start(i);
        int length = (int) spec.packing().end(i) - start;
        var sharing = new TreeSet<Integer>();
        for (int position = start; position < start + length; position++) {
          sharing.add(owners[position]);
        }
        int first = sharing.first();
        // A sequence of fewer tokens than parts leaves some of its ranks out.
        int count =
            IntStream.rangeClosed(1, ranks)
                .filter(each -> ranks % each == 0 && sharing.last() < first - first % each + each)
                .filter(each -> length < 2 * each || sharing.size() == each)
                .findFirst()
                .orElseThrow();
        int base = first - first % count;
        for (int part = 0, position = start; part < 2 * count; part++) {
          int own = base + Math.min(part, 2 * count - 1 - part);
          int tokens = length / (2 * count) + (part < length % (2 * count) ? 1 : 0);
          for (int token = 0; token < tokens && length >= 2 * count; token++, position++) {
            assertThat(owners[position]).as("%s, %d ranks", spec, ranks).isEqualTo(own);
          }
        }
      }
    }
  }

  /// Returns the work of the busiest rank ÷ the mean, and the share of tokens that are exchanged.
  private static double[] costs(AttentionSpec spec, int ranks) {
    var owners = owners(spec, ranks);
    var work = new double[ranks];
    double exchanged = 0;
    for (int i = 0; i < spec.packing().sequences(); i++) {
      var sharing = new TreeSet<Integer>();
      for (int token = (int) spec.packing().start(i); token < spec.packing().end(i); token++) {
        work[owners[token]] += spec.lastSeen(token) - spec.firstSeen(token) + 1;
        sharing.add(owners[token]);
      }
      exchanged += (spec.packing().end(i) - spec.packing().start(i)) * (sharing.size() - 1.0);
    }
    var all = Arrays.stream(work).summaryStatistics();
    return new double[] {all.getMax() / all.getAverage(), exchanged};
  }

  @Test
  void theWorkIsEvenWithLittleExchange() {
    var random = new SplittableRandom(4);
    int even = 0;
    double exchanged = 0;
    double ofAll = 0;
    for (int trial = 0; trial < 200; trial++) {
      var spec = drawn(random);
      int ranks = 2 + random.nextInt(7);
      var costs = costs(spec, ranks);
      var perSequence = costs(spec.layout(TokenLayout.PER_SEQUENCE), ranks);
      even += costs[0] <= Math.max(1.06, perSequence[0] * 1.001) ? 1 : 0;
      assertThat(costs[0])
          .as("%s, %d ranks", spec, ranks)
          .isLessThanOrEqualTo(Math.max(1.2, perSequence[0] * 1.1));
      exchanged += costs[1];
      ofAll += perSequence[1];
    }
    assertThat(even).isGreaterThanOrEqualTo(180);
    assertThat(exchanged).isLessThan(0.8 * ofAll);
  }

  @Test
  void oneLongSequenceIsSharedAndShortOnesAreWhole() {
    var ends =
        IntStream.concat(IntStream.of(0), IntStream.rangeClosed(0, 30).map(i -> 1600 + 100 * i));
    var spec =
        AttentionSpec.of(4600, 1, 8).causal().packed(ends.toArray()).layout(TokenLayout.BY_WORK);
    var owners = owners(spec, 4);
    assertThat(Arrays.stream(owners, 0, 1600).distinct().count()).isEqualTo(4);
    for (int i = 0; i < 30; i++) {
      int start = 1600 + 100 * i;
      assertThat(Arrays.stream(owners, start, start + 100).distinct().count()).isEqualTo(1);
    }
  }
}
