package braid.internal.selftest;

import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.Packing;
import braid.model.TokenLayout;
import braid.model.Tokens;
import braid.natives.kernels.PlainAttention;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Computes attention of a whole sequence by plain loops, and the rows of a rank by the definition
/// of the layouts.
public final class AttentionOracle {
  private AttentionOracle() {}

  /// Returns the number of the sequence of each row; -1 for padding.
  ///
  /// @param rows those of the queries, or of the keys
  public static int[] sequences(Packing rows) {
    var cumulative = rows.cumulative();
    var padded = rows.padded();
    var sequences = new int[rows.positions()];
    Arrays.fill(sequences, -1);
    for (int i = 0; i + 1 < padded.size(); i++) {
      int tokens = cumulative.get(i + 1) - cumulative.get(i);
      Arrays.fill(sequences, padded.get(i), padded.get(i) + tokens, i);
    }
    return sequences;
  }

  /// Returns the pairs of a query's row and a key's row that see each other. In a sequence, the
  /// last query is where the last key is.
  public static PlainAttention.Mask mask(AttentionSpec spec) {
    var queries = sequences(spec.packing().queries());
    var keys = sequences(spec.packing().keys());
    return (row, key) -> {
      int sequence = queries[row];
      if (sequence < 0 || keys[key] != sequence) {
        return false;
      }
      int after = end(spec.packing().keys(), sequence) - key;
      int back = after - (end(spec.packing().queries(), sequence) - row);
      boolean later = spec.isCausal() && back < 0;
      return !later && (spec.window() == 0 || Math.abs(back) < spec.window());
    };
  }

  private static int end(Packing rows, int sequence) {
    return rows.padded().get(sequence) + tokens(rows, sequence);
  }

  /// Returns the length of a sequence, without padding.
  private static int tokens(Packing rows, int sequence) {
    return rows.cumulative().get(sequence + 1) - rows.cumulative().get(sequence);
  }

  /// Returns which keys no query sees, padding included.
  public static boolean[] unseen(AttentionSpec spec) {
    var mask = mask(spec);
    var unseen = new boolean[spec.keys()];
    for (int key = 0; key < unseen.length; key++) {
      int column = key;
      unseen[key] = IntStream.range(0, spec.sequence()).noneMatch(row -> mask.sees(row, column));
    }
    return unseen;
  }

  /// Returns plain loops over the whole sequence, from inputs with a row per query, and per key.
  public static PlainAttention plain(
      AttentionSpec spec, float[] query, float[] key, float[] value) {
    int columns = spec.heads() * spec.headSize();
    int kvColumns = spec.kvHeads() * spec.headSize();
    return new PlainAttention(
        new PlainAttention.Shape(
            spec.sequence(),
            spec.keys(),
            spec.heads(),
            spec.group(),
            spec.headSize(),
            spec.scale()),
        mask(spec),
        PlainAttention.numbers(columns, query),
        PlainAttention.numbers(kvColumns, spec.isRounded() ? RoundedHeads.of(spec, key) : key),
        PlainAttention.numbers(kvColumns, spec.isRounded() ? RoundedHeads.of(spec, value) : value));
  }

  /// Returns the queries of a rank, and its keys if there are as many.
  public static int[] positions(AttentionSpec spec, int ranks, int rank) {
    return positions(spec, spec.packing().queries(), ranks, rank);
  }

  /// Returns the rows of a rank among those of all ranks, by the definition of the layouts. Parts
  /// have equal length; the first ones have one row more.
  ///
  /// @param all rows of the queries, or of the keys
  public static int[] positions(AttentionSpec spec, Packing all, int ranks, int rank) {
    var padded = all.padded();
    int end = all.positions();
    return switch (spec.layout()) {
      case CONTIGUOUS -> divided(0, end, ranks, rank, rank).toArray();
      case ZIGZAG -> divided(0, end, 2 * ranks, rank, 2 * ranks - 1 - rank).toArray();
      case PER_SEQUENCE ->
          IntStream.range(1, padded.size())
              .flatMap(
                  i ->
                      divided(
                          padded.get(i - 1), padded.get(i), 2 * ranks, rank, 2 * ranks - 1 - rank))
              .toArray();
      case WHOLE_SEQUENCES -> {
        var owners = owners(spec, ranks);
        yield IntStream.range(1, padded.size())
            .filter(i -> owners[i - 1] == rank)
            .flatMap(i -> IntStream.range(padded.get(i - 1), padded.get(i)))
            .toArray();
      }
      // Which ranks share a sequence is a choice; a test of it looks at the outcome.
      case BY_WORK ->
          Tokens.rowsOf(spec, all, ranks, rank).runs().stream()
              .flatMapToInt(run -> IntStream.range((int) run.first(), (int) run.end()))
              .toArray();
      case STRIPED -> IntStream.range(0, end).filter(each -> each % ranks == rank).toArray();
    };
  }

  /// Returns the positions of two parts of some positions; of one part if both are the same.
  private static IntStream divided(int start, int end, int parts, int first, int second) {
    var positions = IntStream.builder();
    for (int part = 0, next = start; part < parts; part++) {
      int length = (end - start) / parts + (part < (end - start) % parts ? 1 : 0);
      for (int i = 0; i < length; i++, next++) {
        if (part == first || part == second) {
          positions.add(next);
        }
      }
    }
    return positions.build();
  }

  /// Returns the rank of each sequence that has tokens or padding. Sequences with more pairs of a
  /// query and a key come first, each to the rank with the fewest pairs, then the fewest tokens.
  private static int[] owners(AttentionSpec spec, int ranks) {
    int count = spec.packing().sequences();
    var pairs = new long[count];
    for (int i = 0; i < count; i++) {
      int queries = tokens(spec.packing().queries(), i);
      int keys = tokens(spec.packing().keys(), i);
      int ahead = spec.isCausal() ? 0 : spec.window() > 0 ? spec.window() - 1 : keys + queries;
      int back = spec.window() > 0 ? spec.window() - 1 : keys + queries;
      for (int query = 0; query < queries; query++) {
        int same = query + keys - queries;
        int first = Math.max(0, same - back);
        int last = Math.min(keys - 1, same + ahead);
        pairs[i] += Math.max(0, last - first + 1);
      }
    }
    var owners = new int[count];
    var work = new long[ranks];
    var tokens = new long[ranks];
    var left = new ArrayList<>(IntStream.range(0, count).boxed().toList());
    while (!left.isEmpty()) {
      int most = left.getFirst();
      for (int each : left) {
        most = pairs[each] > pairs[most] ? each : most;
      }
      left.remove(Integer.valueOf(most));
      int length = length(spec.packing(), most);
      if (length == 0) {
        continue;
      }
      int least = 0;
      for (int rank = 1; rank < ranks; rank++) {
        boolean isLess =
            work[rank] < work[least] || (work[rank] == work[least] && tokens[rank] < tokens[least]);
        least = isLess ? rank : least;
      }
      owners[most] = least;
      work[least] += pairs[most];
      tokens[least] += length;
    }
    return owners;
  }

  /// Returns the longer of a sequence's queries and keys, and of their paddings.
  private static int length(Packing packing, int sequence) {
    int longest = 0;
    int padding = 0;
    for (var rows : List.of(packing.queries(), packing.keys())) {
      int own = tokens(rows, sequence);
      longest = Math.max(longest, own);
      padding =
          Math.max(padding, rows.padded().get(sequence + 1) - rows.padded().get(sequence) - own);
    }
    return longest + padding;
  }

  /// Returns whether a layout divides packed sequences, not all tokens as one sequence.
  public static boolean dividesSequences(TokenLayout layout) {
    return layout == TokenLayout.PER_SEQUENCE
        || layout == TokenLayout.WHOLE_SEQUENCES
        || layout == TokenLayout.BY_WORK;
  }

  /// Returns whether ranks that exchange keys can divide the tokens: every rank has some.
  public static boolean canDivide(AttentionSpec spec, int ranks) {
    return Stream.of(spec.packing().queries(), spec.packing().keys())
        .allMatch(
            rows ->
                IntStream.range(0, ranks)
                    .allMatch(rank -> positions(spec, rows, ranks, rank).length > 0));
  }

  /// Returns whether a method can divide the tokens: heads are not exchanged in stripes.
  public static boolean canDivide(AttentionSpec spec, ContextParallel method, int ranks) {
    return canDivide(spec, ranks)
        && (spec.layout() != TokenLayout.STRIPED || method.headRanks(ranks) == 1);
  }

  /// Returns the rows of those positions.
  public static float[] rows(float[] all, int columns, int... positions) {
    var rows = new float[positions.length * columns];
    for (int row = 0; row < positions.length; row++) {
      System.arraycopy(all, positions[row] * columns, rows, row * columns, columns);
    }
    return rows;
  }
}
