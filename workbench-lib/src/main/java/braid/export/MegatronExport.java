package braid.export;

import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.Method;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Decisions on a layer's GEMMs, by name (`fc1_fprop`), as tables of Megatron-LM and
/// Megatron-Bridge.
public final class MegatronExport {
  private static final List<String> BRIDGE_FIELDS =
      List.of(
          "qkv_dgrad",
          "qkv_wgrad",
          "fc1_dgrad",
          "fc1_wgrad",
          "qkv_fprop",
          "proj_dgrad",
          "fc1_fprop",
          "fc2_dgrad",
          "proj_fprop",
          "fc2_fprop");

  /// Keys that a dataclass of Megatron-Bridge must have, with the defaults of Transformer Engine.
  private static final Map<String, Object> BLOCK_DEFAULTS =
      Map.of("num_sm", 16, "cga_size", 2, "set_sm_margin", true);

  private MegatronExport() {}

  /// Returns the methods that overlap a pattern in Transformer Engine too: tune among them for a
  /// table.
  public static List<Method> methods(GemmSpec.Pattern pattern) {
    return Stream.of(Method.values())
        .filter(method -> !UserbuffersTable.counterpart(pattern, method).isEmpty())
        .toList();
  }

  /// Returns the file of `--tp-comm-overlap-cfg`.
  ///
  /// @throws BraidException if the decisions do not make a table that Transformer Engine accepts
  public static Export yaml(Map<String, TunedGemm> decisions) {
    var table = UserbuffersTable.of(decisions);
    var body = new StringBuilder();
    table
        .entries()
        .forEach(
            (gemm, keys) -> {
              body.append(Export.comment(List.of(String.valueOf(table.decisions().get(gemm)))));
              body.append(gemm).append(":\n");
              keys.forEach((key, value) -> body.append("  %s: %s\n".formatted(key, value)));
            });
    return Export.commented(
        table.machine(),
        "Megatron-LM, " + UserbuffersRules.VERSION,
        table.omitted(),
        body.isEmpty() ? "{}\n" : body.toString());
  }

  /// Sizes in the name of a table of Megatron-Bridge.
  ///
  /// @param gpu short name of the GPU, such as `h200`
  /// @param cp ranks of context parallelism
  public record BridgeName(String gpu, int hidden, int cp, int microBatch, int sequence) {
    private static final Pattern GPU = Pattern.compile("[a-z][a-z0-9]{0,15}");

    public BridgeName {
      if (!GPU.matcher(gpu).matches()) {
        throw new BraidException(
            "a GPU's name must be a letter and then letters and digits, all small, but was `%s`; try h200"
                .formatted(gpu.replaceAll("\\p{Cntrl}", "?")));
      }
      positive("hidden", hidden);
      positive("cp", cp);
      positive("microBatch", microBatch);
      positive("sequence", sequence);
    }

    private static void positive(String name, int value) {
      if (value < 1) {
        throw new BraidException(
            "%s must be 1 or more but was %d; give the size of the run".formatted(name, value));
      }
    }

    private String text(UserbuffersTable table) {
      var type =
          table.mode() == UserbuffersRules.Mode.FP8
              ? "fp8"
              : table.decisions().firstEntry().getValue().problem().dtype().toString();
      return "userbuffers_%s_%s_h%d_tp%d%s_mbs%d_seqlen%d"
          .formatted(type, gpu, hidden, table.tp(), cp > 1 ? "_cp" + cp : "", microBatch, sequence);
    }
  }

  /// Returns a `TransformerLayerTPOverlapCfg` of Megatron-Bridge, under its naming scheme.
  ///
  /// @throws BraidException if the decisions do not make a table that Transformer Engine accepts
  public static Export dataclass(Map<String, TunedGemm> decisions, BridgeName name) {
    var table = UserbuffersTable.of(decisions);
    if (table.decisions().isEmpty()) {
      throw new BraidException(
          "a table of Megatron-Bridge needs a decision on one of %s but has none of them; try yaml"
              .formatted(String.join(", ", BRIDGE_FIELDS)));
    }
    var omitted = new ArrayList<>(table.omitted());
    var fields =
        BRIDGE_FIELDS.stream()
            .map(gemm -> "    %s=%s,\n".formatted(gemm, field(gemm, table, omitted)))
            .collect(Collectors.joining());
    var body =
        """
        from megatron.bridge.training.comm_overlap import (
            BulkOverlapCfg,
            PipelineOverlapCfg,
            RingExchangeOverlapCfg,
            TransformerLayerTPOverlapCfg,
        )

        %s = TransformerLayerTPOverlapCfg(
        %s)
        """
            .formatted(name.text(table), fields);
    return Export.commented(
        table.machine(), "Megatron-Bridge, " + UserbuffersRules.VERSION, omitted, body);
  }

  private static String field(String gemm, UserbuffersTable table, List<String> omitted) {
    var keys = table.entries().get(gemm);
    if (keys == null) {
      return "None";
    }
    var arguments = new LinkedHashMap<String, Object>(keys);
    var method = String.valueOf(arguments.remove("method"));
    for (var key : List.of("use_ce", "comm_priority", "gemm_priority")) {
      var value = arguments.remove(key);
      if (value != null && !Boolean.TRUE.equals(value)) {
        omitted.add("%s: %s = %s, which the dataclasses do not have".formatted(gemm, key, value));
      }
    }
    if (!method.equals("ring_exchange")) {
      BLOCK_DEFAULTS.keySet().stream()
          .sorted()
          .filter(key -> !arguments.containsKey(key))
          .forEach(
              key -> {
                var value = BLOCK_DEFAULTS.get(key);
                arguments.put(key, value);
                omitted.add(
                    "%s: %s = %s was not measured; it is the default of Transformer Engine, which the dataclass requires"
                        .formatted(gemm, key, value));
              });
    }
    if (method.equals("pipeline")) {
      // The dataclass has a tuple as default, which counts as true.
      arguments.put("fp8_buf", false);
    }
    var type =
        switch (method) {
          case "ring_exchange" -> "RingExchangeOverlapCfg";
          case "pipeline" -> "PipelineOverlapCfg";
          default -> "BulkOverlapCfg";
        };
    return type
        + arguments.entrySet().stream()
            .map(each -> each.getKey() + "=" + python(each.getValue()))
            .collect(Collectors.joining(", ", "(", ")"));
  }

  private static String python(Object value) {
    return value instanceof Boolean flag ? (flag ? "True" : "False") : value.toString();
  }
}
