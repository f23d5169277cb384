package braid.selftest;

import braid.Capabilities;
import braid.internal.selftest.CollectiveCase;
import braid.internal.selftest.MemoryCase;
import braid.internal.selftest.PipelineCases;
import braid.internal.selftest.TabledCase;
import braid.model.DType;
import braid.model.Library;
import braid.model.MemoryKind;
import braid.model.SelfCheck;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.stream.Collectors;

/// What a self-test runs: the same on all ranks, since it follows from what they all say and from
/// the backend's capabilities.
record SelfTestPlan(
    List<MemoryKind> kinds,
    List<DType> dtypes,
    boolean quick,
    Random random,
    List<SelfCheck> checks) {

  /// @param programs how many
  /// @param seed of the first; each next one has the next
  record Random(int programs, long seed) {}

  /// What the backend or a library says there is none of, in memory of that kind.
  List<SelfTest.Row> holes(
      List<Capabilities.Row> rows, List<Capabilities.CollectiveRow> collectives) {
    var holes = new ArrayList<SelfTest.Row>();
    for (var row : rows) {
      if (!row.supported()) {
        holes.add(
            hole(
                row.pattern().toString(),
                row.method().toString(),
                row.transport().toString(),
                row.kind(),
                row.note()));
      }
    }
    for (var row : collectives) {
      if (!row.supported()) {
        holes.add(
            hole(row.collective(), SelfTest.Way.ANY, row.way().toString(), row.kind(), row.note()));
      } else if (row.adds()) {
        row.way()
            .library()
            .ifPresent(
                library ->
                    dtypes.stream()
                        .filter(dtype -> !library.adds(dtype))
                        .forEach(dtype -> holes.add(notAdded(row, library, dtype))));
      }
    }
    return holes;
  }

  private static SelfTest.Row notAdded(
      Capabilities.CollectiveRow row, Library library, DType dtype) {
    return new SelfTest.Row(
        new SelfTest.Way(
            row.collective(),
            SelfTest.Way.ANY,
            row.way().toString(),
            row.kind().toString(),
            dtype.toString()),
        SelfTest.Outcome.NOT_AVAILABLE,
        0,
        "%s does not add %s; say over(COPY_ENGINE)".formatted(library, dtype));
  }

  private static SelfTest.Row hole(
      String what, String method, String over, MemoryKind kind, String why) {
    return new SelfTest.Row(
        new SelfTest.Way(what, method, over, kind.toString(), SelfTest.Way.ANY),
        SelfTest.Outcome.NOT_AVAILABLE,
        0,
        why);
  }

  /// The cases of that kind of memory, by what they are of.
  SequencedMap<SelfTest.Way, List<TabledCase>> cases(
      MemoryKind kind,
      List<Capabilities.Row> rows,
      List<Capabilities.CollectiveRow> collectives,
      int ranks) {
    var all = new ArrayList<TabledCase>();
    if (quick) {
      all.addAll(PipelineCases.quick(rows, ranks));
      all.addAll(CollectiveCase.supported(CollectiveCase.quick(), collectives));
      all.addAll(MemoryCase.quick());
    } else {
      all.addAll(PipelineCases.table(rows, ranks));
      all.addAll(PipelineCases.featuresAndOptions(rows, ranks));
      all.addAll(CollectiveCase.supported(CollectiveCase.table(), collectives));
      all.addAll(CollectiveCase.supported(CollectiveCase.large(), collectives));
      all.addAll(MemoryCase.table());
    }
    var byWay = new LinkedHashMap<SelfTest.Way, List<TabledCase>>();
    for (var each : all) {
      if (dtypes.contains(each.dtype())) {
        byWay.computeIfAbsent(way(each, kind), _ -> new ArrayList<>()).add(each);
      }
    }
    return byWay;
  }

  private static SelfTest.Way way(TabledCase of, MemoryKind kind) {
    return new SelfTest.Way(
        of.what(),
        of.method().isEmpty() ? SelfTest.Way.ANY : of.method(),
        of.over().isEmpty() ? SelfTest.Way.ANY : of.over(),
        kind.toString(),
        of.dtype().toString());
  }

  @Override
  public String toString() {
    return "kinds %s, dtypes %s, %s, %d random programs from seed %d, checks %s"
        .formatted(
            kinds,
            dtypes,
            quick ? "quick" : "whole",
            random.programs,
            random.seed,
            checks.stream().map(SelfCheck::name).collect(Collectors.joining(", ")));
  }
}
