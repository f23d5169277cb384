package braid;

import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.TokenLayout;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import braid.shapes.Lengths;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;

/// Prints the predicted times of one batch by each fixed number of ranks per sequence, and by
/// [TokenLayout#BY_WORK]. With a fixed number the ranks are groups of as many; the sequences go to
/// groups by work, the longest first, and each group takes its fastest layout and method. Not a
/// test; run it by hand:
///
/// `java -cp … braid.ContextSizes [ranks per host]`
final class ContextSizes {
  private static final int RANKS = 8;
  private static final int ITERATIONS = 3;

  private ContextSizes() {}

  private static AttentionSpec spec(Lengths lengths) {
    return lengths.attention(32, 128).kvHeads(8).causal().dtype(DType.BF16);
  }

  /// Returns the predicted time of the fastest division among all ranks of a group.
  ///
  /// @param byWork true for [TokenLayout#BY_WORK], false for the others
  private static double millis(Machine machine, AttentionSpec spec, int ranks, boolean byWork) {
    var times =
        ranks == 1
            ? DoubleStream.of(
                Schedule.of(spec, ContextParallel.ring(), ranks)
                    .simulate(machine, ITERATIONS)
                    .summary()
                    .medianNanos())
            : Balance.of(spec, ranks).on(machine).rows().stream()
                .filter(row -> (row.division().layout() == TokenLayout.BY_WORK) == byWork)
                .mapToDouble(row -> row.nanos().orElseThrow());
    return times.min().orElseThrow() / 1e6;
  }

  /// Returns the time of the group that takes longest.
  static double fixed(Machine machine, Lengths lengths, int size) {
    var groups = new ArrayList<List<Integer>>();
    IntStream.range(0, RANKS / size).forEach(_ -> groups.add(new ArrayList<>()));
    lengths.tokens().stream()
        .sorted(Comparator.reverseOrder())
        .forEach(
            next ->
                groups.stream()
                    .min(Comparator.comparingDouble(ContextSizes::pairs))
                    .orElseThrow()
                    .add(next));
    return groups.stream()
        .filter(group -> !group.isEmpty())
        .mapToDouble(group -> millis(machine, spec(new Lengths(group)), size, false))
        .max()
        .orElseThrow();
  }

  private static double pairs(List<Integer> group) {
    return group.stream().mapToDouble(tokens -> 0.5 * tokens * tokens).sum();
  }

  public static void main(String[] given) {
    var h100 = Machine.h100x8();
    var machine = given.length > 0 ? h100.withRanksPerHost(Integer.parseInt(given[0])) : h100;
    var batches = new LinkedHashMap<String, Lengths>();
    batches.put("web documents", Lengths.logNormal(65_536, 800, 1.5, 7));
    batches.put("similar lengths", Lengths.logNormal(65_536, 2_000, 0.5, 7));
    batches.put(
        "one long, many short",
        new Lengths(
            IntStream.concat(IntStream.of(32_768), IntStream.generate(() -> 512).limit(64))
                .boxed()
                .toList()));
    System.out.println("| lengths | sequences | longest | 1 | 2 | 4 | 8 | by work | gain |");
    System.out.println("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (Map.Entry<String, Lengths> batch : batches.entrySet()) {
      var lengths = batch.getValue();
      var fixed =
          IntStream.of(1, 2, 4, 8).mapToDouble(size -> fixed(machine, lengths, size)).toArray();
      double byWork = millis(machine, spec(lengths), RANKS, true);
      System.out.printf(
          "| %s | %d | %,d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |%n",
          batch.getKey(),
          lengths.tokens().size(),
          lengths.tokens().stream().mapToInt(Integer::intValue).max().orElseThrow(),
          fixed[0],
          fixed[1],
          fixed[2],
          fixed[3],
          byWork,
          IntStream.range(0, fixed.length).mapToDouble(i -> fixed[i]).min().orElseThrow() / byWork);
    }
  }
}
