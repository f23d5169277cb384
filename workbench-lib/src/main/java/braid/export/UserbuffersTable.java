package braid.export;

import braid.export.UserbuffersRules.Mode;
import braid.model.BraidException;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.Collectors;

/// Decisions on a layer's GEMMs as a table for Transformer Engine, with all that has no counterpart
/// there.
///
/// Its `ring_exchange` of an all-gather is a ring, as [Method#RING] is. Its `ring_exchange` of a
/// reduce-scatter sends each rank's part to its owner, who adds all parts, as [Method#DIRECT] does;
/// partial sums that travel around a ring have no counterpart. Its `pipeline` cuts the columns of
/// the output, [Method#PIPELINED] cuts the rows of each rank's part. `pipeline` and `bulk`
/// communicate by multiprocessors only.
///
/// @param entries keys of each GEMM that has a counterpart, in the order of a layer
/// @param decisions the decisions of these
/// @param omitted what has none
record UserbuffersTable(
    SequencedMap<String, SequencedMap<String, Object>> entries,
    SequencedMap<String, TunedGemm> decisions,
    List<String> omitted,
    MeasuredOn machine,
    Mode mode,
    int tp) {
  static UserbuffersTable of(Map<String, TunedGemm> decisions) {
    var machine = TunedGemm.machine(decisions.values());
    var first = decisions.values().iterator().next();
    var mode = first.problem().isScaled() ? Mode.FP8 : Mode.NONE;
    var entries = new LinkedHashMap<String, SequencedMap<String, Object>>();
    var kept = new LinkedHashMap<String, TunedGemm>();
    var omitted = new ArrayList<String>();
    for (var gemm : UserbuffersRules.GEMMS) {
      var decision = decisions.get(gemm);
      if (decision != null) {
        checkTypes(gemm, decision, mode);
        var reader = new Reader(gemm, decision, omitted);
        reader.entry().ifPresent(keys -> entries.put(gemm, keys));
        kept.put(gemm, decision);
      }
    }
    decisions.keySet().stream()
        .filter(gemm -> !UserbuffersRules.GEMMS.contains(gemm))
        .sorted()
        .forEach(
            gemm ->
                omitted.add(
                    gemm + ": Transformer Engine overlaps the layers qkv, proj, fc1 and fc2 only"));
    if (entries.values().stream().anyMatch(keys -> !keys.containsValue("bulk"))) {
      omitted.add(
          "streams: measured with %s for GEMMs; Transformer Engine uses up to 3, without a key"
              .formatted(
                  kept.values().stream()
                      .map(each -> Integer.toString(each.tuning().streams()))
                      .distinct()
                      .collect(Collectors.joining(" or "))));
    }
    checkRules(entries, mode);
    return new UserbuffersTable(
        Collections.unmodifiableSequencedMap(entries), kept, omitted, machine, mode, first.ranks());
  }

  private static void checkTypes(String gemm, TunedGemm decision, Mode mode) {
    if (decision.problem().isScaled() != (mode == Mode.FP8)) {
      throw new BraidException(
          "decisions of one table must all be FP8 or none, but %s is %s; export them apart"
              .formatted(gemm, decision.problem().dtype()));
    }
  }

  private static void checkRules(Map<String, ? extends Map<String, Object>> entries, Mode mode) {
    var broken = UserbuffersRules.of(mode).fatal(entries);
    if (!broken.isEmpty()) {
      throw new BraidException(
          "decisions must make a table that Transformer Engine accepts, but "
              + broken.getFirst().text());
    }
  }

  /// Returns the method of Transformer Engine; empty if it has none.
  static String counterpart(Pattern pattern, Method method) {
    return switch (pattern) {
      case ALL_GATHER_GEMM -> method == Method.RING ? "ring_exchange" : "";
      case GEMM_REDUCE_SCATTER ->
          switch (method) {
            case PIPELINED -> "pipeline";
            case DIRECT -> "ring_exchange";
            case RING, DOUBLING, TWO_LEVEL, BULK, UNFUSED -> "";
          };
      case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER ->
          method == Method.BULK ? "bulk" : "";
      case GEMM_ALL_REDUCE -> "";
    };
  }

  /// Reads one decision.
  private record Reader(String gemm, TunedGemm decision, List<String> omitted) {
    private static final Map<String, String> SWITCHES =
        Map.of(
            "qkv_fprop", "tp_comm_overlap_disable_qkv",
            "fc1_fprop", "tp_comm_overlap_disable_fc1",
            "proj_fprop", "no tp_comm_overlap_rs, for proj and fc2 together,",
            "fc2_fprop", "no tp_comm_overlap_rs, for proj and fc2 together,",
            "proj_dgrad", "no tp_comm_overlap_ag, for all layers together,",
            "fc2_dgrad", "no tp_comm_overlap_ag, for all layers together,");

    Optional<SequencedMap<String, Object>> entry() {
      checkPattern();
      var tuning = decision.tuning();
      if (tuning.method() == Method.UNFUSED) {
        omitted.add(
            "%s: unfused is fastest, and a table cannot turn an overlap off; %s does in the model's configuration"
                .formatted(gemm, unfusedSwitch()));
        return Optional.empty();
      }
      var method = counterpart(decision.problem().pattern(), tuning.method());
      if (method.isEmpty()) {
        omitted.add(
            "%s: `%s` has no counterpart; without an entry Transformer Engine takes its default, %s"
                .formatted(gemm, tuning, UserbuffersRules.defaultMethod(gemm)));
        return Optional.empty();
      }
      var keys = new LinkedHashMap<String, Object>();
      keys.put("method", method);
      options(method, tuning, keys);
      others(tuning);
      return Optional.of(keys);
    }

    private String unfusedSwitch() {
      return SWITCHES.getOrDefault(
          gemm,
          decision.problem().pattern() == Pattern.GEMM_REDUCE_SCATTER
              ? "no tp_comm_overlap_rs_dgrad"
              : gemm.endsWith("_dgrad")
                  ? "no tp_comm_bulk_dgrad, for qkv and fc1 together,"
                  : "no tp_comm_bulk_wgrad, for qkv and fc1 together,");
    }

    private void checkPattern() {
      var possible =
          switch (gemm) {
            case "qkv_fprop", "fc1_fprop", "proj_dgrad", "fc2_dgrad" ->
                List.of(Pattern.ALL_GATHER_GEMM);
            case "proj_fprop", "fc2_fprop" -> List.of(Pattern.GEMM_REDUCE_SCATTER);
            case "qkv_dgrad", "fc1_dgrad" ->
                List.of(Pattern.GEMM_BESIDE_ALL_GATHER, Pattern.GEMM_REDUCE_SCATTER);
            case "qkv_wgrad", "fc1_wgrad" -> List.of(Pattern.GEMM_BESIDE_REDUCE_SCATTER);
            default -> List.<Pattern>of();
          };
      var pattern = decision.problem().pattern();
      if (!possible.contains(pattern)) {
        throw new BraidException(
            "%s must be %s but was %s; give the decision on that GEMM"
                .formatted(
                    gemm,
                    possible.isEmpty()
                        ? "left out, because it is tuned with its dgrad,"
                        : possible.stream()
                            .map(Pattern::toString)
                            .collect(Collectors.joining(" or ")),
                    pattern));
      }
    }

    private void options(String method, Overlap tuning, Map<String, Object> keys) {
      boolean workers = tuning.transport() == Transport.WORKERS;
      boolean engines = tuning.transport() == Transport.COPY_ENGINE;
      boolean ring = method.equals("ring_exchange");
      if (ring) {
        keys.put("use_ce", engines);
      } else if (engines) {
        omitted.add(
            "%s: measured over copy engines, but %s communicates by multiprocessors; their number stays at the default of 16"
                .formatted(gemm, method));
      }
      if (tuning.transport() == Transport.ONE_KERNEL) {
        omitted.add(
            "%s: measured in one kernel with its signals, on as many multiprocessors as its bytes need; their number stays at the default of 16"
                .formatted(gemm));
      }
      if (tuning.transport().isLibrary()) {
        omitted.add(
            "%s: measured over %s, but %s copies by itself; its options stay at the defaults"
                .formatted(gemm, tuning.transport(), method));
      }
      if (workers) {
        keys.put("num_sm", tuning.workers());
        omitted.add(
            "%s: workers are thread blocks on as many multiprocessors; the size of their clusters and the margin of the GEMM were not measured and stay at the defaults"
                .formatted(gemm));
      }
      switch (method) {
        case "pipeline" -> {
          keys.put("num_splits", tuning.splits());
          omitted.add(
              "%s: measured with %d splits of each rank's rows; Transformer Engine splits the output's columns"
                  .formatted(gemm, tuning.splits()));
        }
        case "ring_exchange" -> {
          if (tuning.splits() > 1) {
            omitted.add(
                "%s: measured with %d splits of each rank's part; a ring moves each part as a whole"
                    .formatted(gemm, tuning.splits()));
          }
        }
        default -> {}
      }
      switch (tuning.priority()) {
        case COMMUNICATION -> {}
        case EQUAL -> {
          keys.put("comm_priority", 0);
          keys.put("gemm_priority", 0);
        }
        case GEMM -> {
          keys.put("comm_priority", 0);
          keys.put("gemm_priority", -1);
        }
      }
      if (gemm.matches("(qkv|fc1)_dgrad") && !method.equals("bulk")) {
        omitted.add(
            "%s: it needs tp_comm_overlap_rs_dgrad in the model's configuration".formatted(gemm));
      }
    }

    private void others(Overlap tuning) {
      if (tuning.order() != Overlap.DEFAULT_ORDER) {
        omitted.add(
            "%s: measured in order %s; Transformer Engine exchanges with the next rank first"
                .formatted(gemm, tuning.order()));
      }
      if (!tuning.boundaries().isEmpty()) {
        omitted.add(
            "%s: boundaries %s; Transformer Engine splits evenly"
                .formatted(gemm, tuning.boundaries()));
      }
      if (tuning.replayed()) {
        omitted.add("%s: replayed as a graph, which no key does".formatted(gemm));
      }
      if (tuning.symmetricOutput()) {
        omitted.add("%s: output in symmetric memory, which no key does".formatted(gemm));
      }
    }
  }
}
