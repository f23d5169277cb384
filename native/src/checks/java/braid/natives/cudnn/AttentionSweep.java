package braid.natives.cudnn;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import java.util.Optional;
import java.util.SplittableRandom;

/// Attention of short sequences, alone and packed, computed by cuDNN and compared with plain loops.
/// cuDNN has kernels of its own for few queries, and some of them return wrong numbers without an
/// error; [Cudnn] asks only for what this sweep finds right.
///
/// A case's number determines the rows of the longest sequence (1 to 64), the heads that share a
/// head of key and value, the type, the direction, and whether sequences are packed. Everything
/// else is random.
public final class AttentionSweep {
  private static final int[] HEAD_SIZES = {8, 16, 24, 32, 48, 64, 80, 96, 128, 128, 192, 256};
  private static final int[] GROUPS = {1, 2, 3, 4, 6, 8};
  private static final int MOST_KV_HEADS = 3;
  private static final int MOST_SEQUENCES = 6;
  private static final int MOST_ROWS = 64;
  private static final int MOST_KEYS = 64;
  private static final int MOST_GAP = 3;

  /// Cases until the determined parts repeat.
  private static final int PERIOD = MOST_ROWS * GROUPS.length * 2 * 2 * 2;

  private final Cudnn cudnn;
  private final AttentionChecks checks;

  private AttentionSweep(Gpu gpu, Cudnn cudnn, GpuStream stream) {
    this.cudnn = cudnn;
    this.checks = new AttentionChecks(gpu, cudnn, stream);
  }

  /// A problem and what was found.
  ///
  /// @param wrong first wrong number; empty if all are right or cuDNN is not asked
  private record Case(
      PackedProblem packed, boolean backward, boolean isAsked, Optional<String> wrong) {
    @Override
    public String toString() {
      return "%s %s%s"
          .formatted(
              backward ? "backward" : "forward",
              packed,
              wrong.map(reason -> ": " + reason).orElse(""));
    }
  }

  /// Runs random cases and returns the first wrong one; empty if all are right.
  public static Optional<String> firstWrong(Gpu gpu, int count, long seed) {
    var random = new SplittableRandom(seed);
    try (var cudnn = Cudnn.open(gpu);
        var stream = gpu.stream(gpu.leastPriority())) {
      var sweep = new AttentionSweep(gpu, cudnn, stream);
      for (int i = 0; i < count; i++) {
        var found = sweep.run(random.nextInt(PERIOD), random);
        if (found.wrong().isPresent()) {
          return Optional.of("seed %d, case %d: %s".formatted(seed, i, found));
        }
      }
      return Optional.empty();
    }
  }

  private Case run(int number, SplittableRandom random) {
    int most = 1 + number % MOST_ROWS;
    int left = number / MOST_ROWS;
    int group = GROUPS[left % GROUPS.length];
    left /= GROUPS.length;
    boolean backward = left % 2 == 1;
    boolean one = left / 2 % 2 == 1;
    var type = left / 4 % 2 == 0 ? AttentionProblem.Type.BF16 : AttentionProblem.Type.FP16;
    var drawn = draw(random, most, group, type, one);
    var problem = drawn.problem();
    var refused = backward ? cudnn.cannotBackward(problem, false) : cudnn.cannot(problem);
    if (refused.isPresent()) {
      return new Case(drawn, backward, false, Optional.empty());
    }
    var wrong = checks.check(drawn, backward, false);
    return new Case(drawn, backward, true, wrong);
  }

  private static PackedProblem draw(
      SplittableRandom random, int most, int group, AttentionProblem.Type type, boolean one) {
    int count = one ? 1 : 2 + random.nextInt(MOST_SEQUENCES - 1);
    boolean causal = random.nextInt(4) > 0;
    boolean sameKeys = (causal && !one) || random.nextBoolean();
    var sizes = new int[count][];
    int longest = random.nextInt(count);
    for (int i = 0; i < count; i++) {
      int rows = i == longest ? most : 1 + random.nextInt(most);
      int keys = sameKeys ? rows : 1 + random.nextInt(MOST_KEYS);
      // Statistics of one sequence have no room for a gap.
      int gap = !one && random.nextInt(4) == 0 ? random.nextInt(MOST_GAP + 1) : 0;
      sizes[i] = new int[] {rows, keys, gap, gap};
    }
    int kvHeads = 1 + random.nextInt(MOST_KV_HEADS);
    int keys = sizes[0][1];
    int window = causal && random.nextInt(4) == 0 ? 1 + random.nextInt(2 * keys) : 0;
    int shift = one && causal ? random.nextInt(keys) : 0;
    int headSize = HEAD_SIZES[random.nextInt(HEAD_SIZES.length)];
    return PackedProblem.of(type, kvHeads * group, kvHeads, headSize, causal, shift, window, sizes);
  }

  /// Runs cases on device 0 in the order of their numbers and prints each of them. Exits with 1 if
  /// one is wrong.
  ///
  /// @param args seconds, the first number and the distance of the numbers, so that several
  ///   processes can share the work
  public static void main(String[] args) {
    double seconds = Double.parseDouble(args[0]);
    int first = Integer.parseInt(args[1]);
    int distance = Integer.parseInt(args[2]);
    var random = new SplittableRandom(first);
    long begun = System.nanoTime();
    boolean right = true;
    try (var gpu = Gpu.open(0, "sweep");
        var cudnn = Cudnn.open(gpu);
        var stream = gpu.stream(gpu.leastPriority())) {
      System.out.printf("%s, cuDNN %s%n", gpu.where(), cudnn.version());
      var sweep = new AttentionSweep(gpu, cudnn, stream);
      for (int number = first; (System.nanoTime() - begun) / 1e9 < seconds; number += distance) {
        var found = sweep.run(number % PERIOD, random);
        right &= found.wrong().isEmpty();
        System.out.printf(
            "%s %s%n",
            !found.isAsked() ? "not-asked" : found.wrong().isEmpty() ? "right" : "WRONG", found);
      }
    }
    if (!right) {
      System.exit(1);
    }
  }
}
