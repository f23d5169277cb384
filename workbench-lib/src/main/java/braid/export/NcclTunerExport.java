package braid.export;

import braid.export.CollectiveTime.Algorithm;
import braid.export.CollectiveTime.Protocol;
import braid.model.BraidException;
import braid.model.Collective;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// Times of collectives as the file of NCCL's example tuner (`NCCL_TUNER_CONFIG_FILE`).
public final class NcclTunerExport {
  private static final String TARGET = "the example tuner of NCCL 2.30.7";

  private NcclTunerExport() {}

  private record Group(Collective collective, int nodes, int ranks) {
    /// Returns the name in the file.
    private String name() {
      return collective.toString().replace("-", "");
    }
  }

  private record Choice(Algorithm algorithm, Protocol protocol, int channels) {
    static Choice of(CollectiveTime time) {
      return new Choice(time.algorithm(), time.protocol(), time.channels());
    }
  }

  /// A range of sizes with one choice.
  private record Row(long least, long most, Choice choice) {
    String text(Group group) {
      return "%s,%d,%d,%s,%s,%d,%d,%d,-1,-1"
          .formatted(
              group.name(),
              least,
              most,
              choice.algorithm(),
              choice.protocol(),
              choice.channels(),
              group.nodes(),
              group.ranks());
    }
  }

  /// Returns the file: for each range of sizes the fastest algorithm, protocol and number of
  /// channels. A larger size keeps the choice of the smaller one unless another is faster by more
  /// than the noise.
  ///
  /// @param noise share of the time by which two measurements of the same work differ
  public static Export csv(Collection<CollectiveTime> times, double noise) {
    if (!(noise >= 0 && noise < 1)) {
      throw new BraidException(
          "noise must be a share of 0 or more and less than 1 but was %s; try a study's noise()"
              .formatted(noise));
    }
    if (times.isEmpty()) {
      throw new BraidException(
          "a file of the tuner needs the time of 1 collective or more but has none; measure one");
    }
    var machine = times.iterator().next().machine();
    if (times.stream().anyMatch(each -> !each.machine().equals(machine))) {
      throw new BraidException(
          "times of one file must be of one machine but are of several; export them apart");
    }
    var groups =
        times.stream()
            .collect(
                Collectors.groupingBy(
                    each -> new Group(each.collective(), each.nodes(), each.ranks())));
    var order =
        Comparator.comparing(Group::collective)
            .thenComparingInt(Group::nodes)
            .thenComparingInt(Group::ranks);
    var body = new StringBuilder();
    var omitted = new ArrayList<String>();
    groups.entrySet().stream()
        .sorted(Map.Entry.comparingByKey(order))
        .forEach(
            group ->
                rows(group.getValue(), noise)
                    .forEach(row -> body.append(row.text(group.getKey())).append('\n')));
    omitted.add(
        "sizes outside the ranges have no row, and the example tuner sets all that have none to 1 channel; put its default of 1 to 0 in plugin.c to keep NCCL's own choice");
    omitted.add("sizes between two measured ones have the choice of the smaller one");
    omitted.add(
        "a choice changes with the size only if it is faster by more than the noise of %s%%"
            .formatted(Math.round(noise * 1000) / 10.0));
    omitted.add("numPipeOps and regBuff were not varied; the rows are for any");
    return Export.commented(machine, TARGET, omitted, body.toString());
  }

  private static List<Row> rows(List<CollectiveTime> times, double noise) {
    var sizes =
        times.stream()
            .collect(
                Collectors.groupingBy(CollectiveTime::bytes, TreeMap::new, Collectors.toList()));
    var rows = new ArrayList<Row>();
    for (var size : sizes.entrySet()) {
      long bytes = size.getKey();
      var measured = size.getValue();
      var fastest =
          measured.stream()
              .min(Comparator.comparingDouble(CollectiveTime::medianNanos))
              .orElseThrow();
      var last = rows.isEmpty() ? null : rows.removeLast();
      if (last == null) {
        rows.add(new Row(bytes, bytes, Choice.of(fastest)));
      } else if (keeps(last.choice(), measured, fastest, noise)) {
        rows.add(new Row(last.least(), bytes, last.choice()));
      } else {
        rows.add(new Row(last.least(), bytes - 1, last.choice()));
        rows.add(new Row(bytes, bytes, Choice.of(fastest)));
      }
    }
    return rows;
  }

  private static boolean keeps(
      Choice choice, List<CollectiveTime> measured, CollectiveTime fastest, double noise) {
    return measured.stream()
        .filter(each -> Choice.of(each).equals(choice))
        .anyMatch(each -> each.medianNanos() <= fastest.medianNanos() * (1 + noise));
  }
}
