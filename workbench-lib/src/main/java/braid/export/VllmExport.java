package braid.export;

import braid.model.BraidException;
import braid.model.Method;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.NavigableMap;
import java.util.SequencedSet;
import java.util.TreeMap;
import java.util.TreeSet;

/// Decisions on a model's GEMMs for several numbers of tokens as the `--compilation-config` of
/// vLLM.
///
/// vLLM can turn sequence parallelism and the overlap of GEMMs on, from a number of tokens on. It
/// overlaps by the symmetric memory of PyTorch; how, is not configured.
public final class VllmExport {
  private static final String TARGET = "vLLM (PassConfig with sp_min_token_num)";

  private VllmExport() {}

  /// Returns the option, as a line of a shell script.
  ///
  /// @param decisions all-gather-GEMMs and GEMM-reduce-scatters, whose rows are the tokens
  public static Export compilationConfig(Collection<TunedGemm> decisions) {
    var machine = TunedGemm.machine(decisions);
    var overlaps = new TreeMap<Integer, Boolean>();
    SequencedSet<String> tunings = new TreeSet<>();
    for (var decision : decisions) {
      var pattern = decision.problem().pattern();
      switch (pattern) {
        case ALL_GATHER_GEMM, GEMM_REDUCE_SCATTER -> {}
        case GEMM_ALL_REDUCE, GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER ->
            throw new BraidException(
                "a decision for vLLM must be on an all-gather-gemm or a gemm-reduce-scatter but was on a %s; give those of the forward pass"
                    .formatted(pattern));
      }
      boolean unfused = decision.tuning().method() == Method.UNFUSED;
      overlaps.merge(decision.problem().m(), !unfused, Boolean::logicalAnd);
      if (!unfused) {
        tunings.add(decision.tuning().toString());
      }
    }
    var omitted = new ArrayList<String>();
    var passes = new JsonObject();
    int least = leastTokens(overlaps);
    passes.addProperty("enable_sp", least > 0);
    passes.addProperty("fuse_gemm_comms", least > 0);
    if (least > 0) {
      passes.addProperty("sp_min_token_num", least);
      omitted.add(
          "%s: vLLM overlaps by the symmetric memory of PyTorch, whose method and splits have no option"
              .formatted(String.join("; ", tunings)));
    }
    irregular(overlaps, least, omitted);
    omitted.add(
        "measured for %s tokens; between them the option is a guess".formatted(overlaps.keySet()));
    omitted.add("sequence parallelism was not compared with an all-reduce");
    omitted.add(
        "fi_allreduce_fusion_max_size_mb: it needs times of FlashInfer's all-reduce, which Braid does not run");
    var config = new JsonObject();
    config.add("pass_config", passes);
    return Export.commented(
        machine, TARGET, omitted, "--compilation-config '%s'\n".formatted(config));
  }

  /// Returns the least number of tokens from which on every measured number overlaps; 0 if the
  /// largest does not.
  private static int leastTokens(NavigableMap<Integer, Boolean> overlaps) {
    int least = 0;
    for (var each : overlaps.descendingMap().entrySet()) {
      if (!each.getValue()) {
        break;
      }
      least = each.getKey();
    }
    return least;
  }

  private static void irregular(
      NavigableMap<Integer, Boolean> overlaps, int least, List<String> omitted) {
    overlaps.forEach(
        (tokens, overlapped) -> {
          if (overlapped && (least == 0 || tokens < least)) {
            omitted.add(
                "%d tokens: every GEMM is faster overlapped, but not with more tokens; vLLM has one threshold"
                    .formatted(tokens));
          }
        });
  }
}
