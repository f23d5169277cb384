package braid.selftest;

import braid.Capabilities;
import braid.internal.selftest.AttentionCase;
import braid.internal.selftest.BoundTensorsCase;
import braid.internal.selftest.ChainCase;
import braid.internal.selftest.CollectiveCase;
import braid.internal.selftest.CommunicationCase;
import braid.internal.selftest.ComparedForms;
import braid.internal.selftest.MemoryCase;
import braid.internal.selftest.OwnScheduleCase;
import braid.internal.selftest.PipelineCases;
import braid.internal.selftest.TabledCase;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec.Pattern;
import braid.model.MemoryKind;
import braid.model.SelfCheck;
import braid.model.Transport;
import braid.selftest.SelfTest.Configuration;
import braid.selftest.SelfTest.Row;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Contents of a self-test, the same on all ranks, since it depends only on their common settings
/// and on the backend's capabilities.
record SelfTestPlan(
    List<MemoryKind> kinds,
    List<DType> dtypes,
    List<String> subjects,
    boolean quick,
    Random random,
    List<SelfCheck> checks) {

  /// Random programs.
  ///
  /// @param programs number of programs
  /// @param seed seed of the first program; each following one has the next seed
  record Random(int programs, long seed) {}

  /// Returns true if the subject of a case, `attention-backward`, is tested.
  boolean tests(String subject) {
    return subjects.isEmpty() || subjects.stream().anyMatch(subject::contains);
  }

  /// Returns rows for everything that the backend or a library does not offer in memory of a kind.
  List<Row> unsupported(List<Capabilities.Row> rows, List<Capabilities.CollectiveRow> collectives) {
    var unsupported = new ArrayList<Row>();
    for (var row : rows) {
      if (!row.supported()) {
        unsupported.add(
            unsupportedRow(
                row.pattern().toString(),
                row.method().toString(),
                row.transport().toString(),
                row.kind(),
                row.note()));
      } else if (row.transport().multiplies()) {
        dtypes.stream()
            .filter(dtype -> !row.transport().multiplies(dtype))
            .forEach(dtype -> unsupported.add(notMultiplied(row, dtype)));
      }
    }
    for (var row : collectives) {
      if (!row.supported()) {
        unsupported.add(
            unsupportedRow(
                row.collective().toString(), "", row.way().toString(), row.kind(), row.note()));
      } else if (row.collective().adds()) {
        row.way()
            .library()
            .ifPresent(
                library ->
                    dtypes.stream()
                        .filter(dtype -> !library.adds(dtype))
                        .forEach(dtype -> unsupported.add(notAdded(row, library, dtype))));
      }
    }
    return unsupported;
  }

  private static Row notMultiplied(Capabilities.Row row, DType dtype) {
    return Row.notAvailable(
        new Configuration(
            row.pattern().toString(),
            row.method().toString(),
            row.transport().toString(),
            row.kind().toString(),
            dtype.toString()),
        "%s does not multiply %s; take over(COPY_ENGINE)".formatted(row.transport(), dtype));
  }

  private static Row notAdded(Capabilities.CollectiveRow row, Transport library, DType dtype) {
    var way = row.way().toString();
    return Row.notAvailable(
        new Configuration(
            row.collective().toString(), "", way, row.kind().toString(), dtype.toString()),
        "%s does not add %s; call over(COPY_ENGINE)".formatted(library, dtype));
  }

  /// Returns rows for the cases of a memory kind that need more ranks.
  List<Row> needMoreRanks(MemoryKind kind, int ranks) {
    var patterns =
        PipelineCases.missing(ranks).stream()
            .flatMap(_ -> Arrays.stream(Pattern.values()).map(Pattern::toString));
    return Stream.concat(AttentionCase.missing(ranks).stream(), patterns)
        .map(
            subject ->
                unsupportedRow(
                    subject,
                    ContextParallel.Method.TWO_LEVEL.toString(),
                    "",
                    kind,
                    "needs several groups of several ranks but there are %d; run on 4 ranks"
                        .formatted(ranks)))
        .toList();
  }

  private static Row unsupportedRow(
      String subject, String method, String over, MemoryKind kind, String reason) {
    return Row.notAvailable(new Configuration(subject, method, over, kind.toString(), ""), reason);
  }

  /// Returns the configuration of a case that records units of communication.
  static Configuration configuration(CommunicationCase recorded, MemoryKind kind) {
    return new Configuration(
        recorded.what(),
        "",
        recorded.way().toString(),
        kind.toString(),
        CommunicationCase.DTYPE.toString());
  }

  static Configuration configuration(ComparedForms compared) {
    return new Configuration(compared.subject(), "", "", "", ComparedForms.DTYPE.toString());
  }

  /// Returns the cases for a kind of memory, by configuration.
  SequencedMap<Configuration, List<TabledCase>> cases(
      MemoryKind kind,
      List<Capabilities.Row> supported,
      List<Capabilities.CollectiveRow> collectives,
      int ranks) {
    var all = new ArrayList<TabledCase>();
    var rows = PipelineCases.possible(supported, ranks);
    if (quick) {
      all.addAll(PipelineCases.quick(rows, ranks));
      all.addAll(AttentionCase.quick(dtypes, ranks, random.seed()));
      all.addAll(CollectiveCase.supported(CollectiveCase.quick(), collectives));
      all.addAll(MemoryCase.quick());
      all.addAll(BoundTensorsCase.quick(rows, ranks));
      all.addAll(OwnScheduleCase.quick());
      all.addAll(ChainCase.quick());
    } else {
      all.addAll(PipelineCases.table(rows, ranks));
      all.addAll(PipelineCases.featuresAndOptions(rows, ranks));
      all.addAll(AttentionCase.table(dtypes, ranks, random.seed()));
      all.addAll(CollectiveCase.supported(CollectiveCase.table(), collectives));
      all.addAll(CollectiveCase.supported(CollectiveCase.large(), collectives));
      all.addAll(MemoryCase.table());
      all.addAll(BoundTensorsCase.table(rows, ranks));
      all.addAll(OwnScheduleCase.table());
      all.addAll(ChainCase.table());
    }
    all.addAll(AttentionCase.byLibrary(rows, dtypes, ranks));
    var byConfiguration = new LinkedHashMap<Configuration, List<TabledCase>>();
    for (var each : all) {
      if (dtypes.contains(each.dtype()) && tests(each.what())) {
        byConfiguration.computeIfAbsent(way(each, kind), _ -> new ArrayList<>()).add(each);
      }
    }
    return byConfiguration;
  }

  private static Configuration way(TabledCase tabled, MemoryKind kind) {
    return new Configuration(
        tabled.what(), tabled.method(), tabled.over(), kind.toString(), tabled.dtype().toString());
  }

  @Override
  public String toString() {
    return "kinds %s, dtypes %s, only %s, %s, %d random programs from seed %d, checks %s"
        .formatted(
            kinds,
            dtypes,
            subjects,
            quick ? "quick" : "whole",
            random.programs,
            random.seed,
            checks.stream().map(SelfCheck::name).collect(Collectors.joining(", ")));
  }
}
