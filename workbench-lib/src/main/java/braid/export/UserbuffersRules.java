package braid.export;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// The rules of Transformer Engine for the table that overlaps tensor-parallel communication with
/// GEMMs: a mapping of mappings, from the name of a GEMM (`qkv_fprop`) to its keys (`method`,
/// `num_sm`).
///
/// The table is the `ub_cfgs` of `initialize_ub`, which Megatron-LM reads from the file of
/// `--tp-comm-overlap-cfg`. Some rules raise there or at the first run, and some settings are
/// ignored without a word; both are found before a job starts.
///
/// @param modes quantization of the layers; a table may be a list with one table per mode
/// @param overCublasMp true if cuBLASMp runs the overlap instead of Userbuffers
public record UserbuffersRules(List<Mode> modes, boolean overCublasMp) {
  /// Version of Transformer Engine that has these rules, with the commit that they were read from.
  public static final String VERSION =
      "Transformer Engine 2.20.0.dev0 (d0067d0da6cb01811b8072a7d304f0e00344ce2b)";

  /// Quantization of a layer.
  public enum Mode {
    NONE,
    FP8
  }

  /// A rule.
  public enum Rule {
    /// A table maps names of GEMMs to mappings.
    FORM(true),
    /// A list has one table per quantization mode.
    MODES(true),
    /// Layers are qkv, proj, fc1 and fc2; a table of another layer is never read.
    GEMM(false),
    /// A key that `initialize_ub` does not know is a TypeError.
    KEY(true),
    /// A key's value has its type and range.
    VALUE(true),
    /// A method is ring_exchange, pipeline, bulk or external.
    METHOD(true),
    /// An all-gather cannot be pipelined.
    PIPELINED_ALL_GATHER(true),
    /// A GEMM beside other data is bulk, a GEMM of its own data is not.
    BULK(true),
    /// proj_wgrad and fc2_wgrad are external, and no other GEMM is.
    EXTERNAL(true),
    /// An external GEMM uses the ring_exchange of its dgrad.
    EXTERNAL_BASE(true),
    /// A wgrad has a table only if its dgrad is bulk.
    WGRAD_OF_FUSED_DGRAD(true),
    /// A dgrad with a method of its own works with one quantization mode only: the second finds the
    /// defaults that the first has changed.
    FUSED_DGRAD_OF_MODES(true),
    /// is_reduce_scatter is what the GEMM communicates.
    DIRECTION(true),
    /// atomic_gemm needs FP8.
    ATOMIC_TYPE(true),
    /// Both GEMMs of a block exchange atomically, or none.
    ATOMIC_PAIR(true),
    /// cuBLASMp knows no bulk and no external overlap.
    CUBLASMP(true),
    /// A key counts only for some methods.
    NO_EFFECT(false);

    private final boolean fatal;

    Rule(boolean fatal) {
      this.fatal = fatal;
    }

    /// Returns true if a table that breaks it cannot work: it ends with an error at the start or at
    /// the first run, or exchanges the wrong data. Returns false if the setting is silently
    /// ignored.
    public boolean isFatal() {
      return fatal;
    }
  }

  /// A broken rule.
  ///
  /// @param gemm name of the table's entry; empty if it is about the whole table
  /// @param text name, rule, value and remedy in one line
  public record Finding(String gemm, Rule rule, String text) {
    @Override
    public String toString() {
      return text;
    }
  }

  /// Methods by their names in the table.
  private static final String RING = "ring_exchange";

  private static final String PIPELINE = "pipeline";
  private static final String BULK = "bulk";
  private static final String EXTERNAL = "external";
  private static final List<String> METHODS = List.of(RING, PIPELINE, BULK, EXTERNAL);

  /// GEMMs by the method that they have by default.
  private static final Map<String, List<String>> DEFAULTS =
      Map.of(
          RING, List.of("qkv_fprop", "fc1_fprop", "proj_dgrad", "fc2_dgrad"),
          PIPELINE, List.of("proj_fprop", "fc2_fprop"),
          BULK, List.of("qkv_dgrad", "qkv_wgrad", "fc1_dgrad", "fc1_wgrad"),
          EXTERNAL, List.of("proj_wgrad", "fc2_wgrad"));

  /// Names of all GEMMs, in the order of a layer.
  public static final List<String> GEMMS =
      List.of(
          "qkv_fprop",
          "qkv_dgrad",
          "qkv_wgrad",
          "proj_fprop",
          "proj_dgrad",
          "proj_wgrad",
          "fc1_fprop",
          "fc1_dgrad",
          "fc1_wgrad",
          "fc2_fprop",
          "fc2_dgrad",
          "fc2_wgrad");

  private static final Set<String> FUSIBLE_DGRADS = Set.of("qkv_dgrad", "fc1_dgrad");
  private static final Map<String, String> ATOMIC_PAIRS =
      Map.of("qkv_fprop", "proj_fprop", "fc1_fprop", "fc2_fprop");

  private enum Type {
    METHOD,
    FLAG,
    /// 1 or more.
    COUNT,
    /// Of a CUDA stream; smaller numbers come first.
    PRIORITY
  }

  private static final Map<String, Type> KEYS =
      new TreeMap<>(
          Map.ofEntries(
              Map.entry("method", Type.METHOD),
              Map.entry("is_reduce_scatter", Type.FLAG),
              Map.entry("num_sm", Type.COUNT),
              Map.entry("cga_size", Type.COUNT),
              Map.entry("set_sm_margin", Type.FLAG),
              Map.entry("num_splits", Type.COUNT),
              Map.entry("aggregate", Type.FLAG),
              Map.entry("atomic_gemm", Type.FLAG),
              Map.entry("use_ce", Type.FLAG),
              Map.entry("fp8_buf", Type.FLAG),
              Map.entry("comm_priority", Type.PRIORITY),
              Map.entry("gemm_priority", Type.PRIORITY),
              Map.entry("pipeline_rs_overlap_first_gemm", Type.FLAG)));

  public UserbuffersRules {
    modes = List.copyOf(modes);
  }

  /// Returns the rules of layers with one or several quantization modes, over Userbuffers.
  public static UserbuffersRules of(Mode... modes) {
    return new UserbuffersRules(modes.length == 0 ? List.of(Mode.NONE) : List.of(modes), false);
  }

  /// Returns the rules of an overlap by cuBLASMp.
  public UserbuffersRules cublasMp() {
    return new UserbuffersRules(modes, true);
  }

  /// Returns every broken rule of a table, or of a list of tables.
  ///
  /// @param parsed what a YAML or JSON reader returns: maps, lists, texts, numbers and flags
  public List<Finding> check(Object parsed) {
    if (!(parsed instanceof List<?> tables)) {
      return modes.stream().flatMap(mode -> table(parsed, mode).stream()).distinct().toList();
    }
    if (tables.size() != modes.size()) {
      return List.of(
          new Finding(
              "",
              Rule.MODES,
              "a list must have a table for each of %d quantization modes %s but has %d; give one for each, or one table for all"
                  .formatted(modes.size(), modes, tables.size())));
    }
    var all = new ArrayList<Finding>();
    for (int i = 0; i < tables.size(); i++) {
      all.addAll(table(tables.get(i), modes.get(i)));
    }
    return all;
  }

  /// Returns the broken rules with which a table cannot work.
  public List<Finding> fatal(Object parsed) {
    return check(parsed).stream().filter(each -> each.rule().isFatal()).toList();
  }

  private List<Finding> table(Object parsed, Mode mode) {
    if (!(parsed instanceof Map<?, ?> table)) {
      return List.of(
          new Finding(
              "",
              Rule.FORM,
              "a table must map names of GEMMs to their keys but was %s; begin with `qkv_fprop:`"
                  .formatted(shown(parsed))));
    }
    var check = new TableCheck(mode);
    table.forEach((name, keys) -> check.entry(String.valueOf(name), keys));
    check.relations();
    return check.findings;
  }

  private static String shown(Object value) {
    var text = String.valueOf(value).replaceAll("\\p{Cntrl}", "?");
    return text.length() > 60 ? text.substring(0, 60) + "..." : text;
  }

  /// Returns the method of a GEMM by default.
  static String defaultMethod(String gemm) {
    return DEFAULTS.entrySet().stream()
        .filter(each -> each.getValue().contains(gemm))
        .findFirst()
        .orElseThrow()
        .getKey();
  }

  /// Checks one table.
  private final class TableCheck {
    private final Mode mode;
    private final List<Finding> findings = new ArrayList<>();
    private final Map<String, Map<?, ?>> entries = new LinkedHashMap<>();

    TableCheck(Mode mode) {
      this.mode = mode;
    }

    private void broken(String gemm, Rule rule, String text) {
      findings.add(new Finding(gemm, rule, gemm + ": " + text));
    }

    void entry(String gemm, Object parsed) {
      if (!GEMMS.contains(gemm)) {
        findings.add(
            new Finding(
                gemm,
                Rule.GEMM,
                "%s: a name must be one of %s; this entry is never read, remove it"
                    .formatted(shown(gemm), String.join(", ", GEMMS))));
        return;
      }
      if (!(parsed instanceof Map<?, ?> keys)) {
        broken(gemm, Rule.FORM, "its keys must be a mapping but were %s".formatted(shown(parsed)));
        return;
      }
      entries.put(gemm, keys);
      keys.forEach((key, value) -> value(gemm, String.valueOf(key), value));
    }

    private void value(String gemm, String key, Object value) {
      var type = KEYS.get(key);
      if (type == null) {
        broken(
            gemm,
            Rule.KEY,
            "a key must be one of %s but was %s; remove it"
                .formatted(String.join(", ", KEYS.keySet()), shown(key)));
        return;
      }
      boolean whole = value instanceof Integer || value instanceof Long;
      switch (type) {
        case METHOD -> {
          if (!(value instanceof String method) || !METHODS.contains(method)) {
            broken(
                gemm,
                Rule.METHOD,
                "method must be one of %s but was %s"
                    .formatted(String.join(", ", METHODS), shown(value)));
          }
        }
        case FLAG -> {
          if (!(value instanceof Boolean)) {
            broken(
                gemm,
                Rule.VALUE,
                "%s must be true or false but was %s".formatted(key, shown(value)));
          }
        }
        case COUNT -> {
          if (!whole || ((Number) value).longValue() < 1) {
            broken(
                gemm, Rule.VALUE, "%s must be 1 or more but was %s".formatted(key, shown(value)));
          }
        }
        case PRIORITY -> {
          if (!whole) {
            broken(
                gemm,
                Rule.VALUE,
                "%s must be a whole number but was %s".formatted(key, shown(value)));
          }
        }
      }
    }

    void relations() {
      entries.keySet().forEach(this::relations);
      if (overCublasMp) {
        return;
      }
      for (var gemm : List.of("proj_wgrad", "fc2_wgrad")) {
        var dgrad = gemm.replace("wgrad", "dgrad");
        if (METHODS.contains(method(dgrad)) && !method(dgrad).equals(RING)) {
          broken(
              gemm,
              Rule.EXTERNAL_BASE,
              "it uses the ring_exchange of %s, whose method is %s; take ring_exchange there"
                  .formatted(dgrad, method(dgrad)));
        }
      }
    }

    private String method(String gemm) {
      var keys = entries.getOrDefault(gemm, Map.of());
      if (keys.containsKey("method")) {
        return String.valueOf(keys.get("method"));
      }
      var method = defaultMethod(gemm);
      return overCublasMp && FUSIBLE_DGRADS.contains(gemm) ? RING : method;
    }

    private boolean isSet(String gemm, String key) {
      return Boolean.TRUE.equals(entries.getOrDefault(gemm, Map.of()).get(key));
    }

    /// A dgrad that is not bulk scatters its own product; a bulk one gathers beside it.
    private boolean scatters(String gemm) {
      return switch (gemm) {
        case "proj_fprop", "fc2_fprop", "qkv_wgrad", "fc1_wgrad" -> true;
        case "qkv_dgrad", "fc1_dgrad" -> !method(gemm).equals(BULK);
        default -> false;
      };
    }

    private void relations(String gemm) {
      var method = method(gemm);
      if (!METHODS.contains(method)) {
        return;
      }
      methodFits(gemm, method);
      if (overCublasMp && (method.equals(BULK) || method.equals(EXTERNAL))) {
        broken(
            gemm,
            Rule.CUBLASMP,
            "cuBLASMp has no %s overlap; take ring_exchange".formatted(method));
      }
      var given = entries.getOrDefault(gemm, Map.of()).get("is_reduce_scatter");
      if (given instanceof Boolean flag && flag != scatters(gemm)) {
        broken(
            gemm,
            Rule.DIRECTION,
            "is_reduce_scatter must be %s for %s but was %s; leave it out"
                .formatted(scatters(gemm), method, flag));
      }
      atomic(gemm, method);
      withoutEffect(gemm, method);
    }

    private void methodFits(String gemm, String method) {
      boolean external = defaultMethod(gemm).equals(EXTERNAL);
      boolean bulk = defaultMethod(gemm).equals(BULK);
      boolean fusible = FUSIBLE_DGRADS.contains(gemm);
      if (external != method.equals(EXTERNAL)) {
        broken(
            gemm,
            Rule.EXTERNAL,
            (external
                    ? "method must be external but was %s; leave it out"
                    : "method must not be %s, which only proj_wgrad and fc2_wgrad have; take "
                        + defaultMethod(gemm))
                .formatted(method));
      } else if (bulk && !fusible && !method.equals(BULK)) {
        broken(gemm, Rule.BULK, "method must be bulk but was %s; leave it out".formatted(method));
      } else if (!bulk && method.equals(BULK)) {
        broken(
            gemm,
            Rule.BULK,
            "it needs the data that it communicates, so method must not be bulk; take %s"
                .formatted(defaultMethod(gemm)));
      }
      if (method.equals(PIPELINE) && !scatters(gemm)) {
        broken(
            gemm,
            Rule.PIPELINED_ALL_GATHER,
            "pipeline is only for a reduce-scatter, and this GEMM gathers; take ring_exchange");
      }
      boolean given = entries.getOrDefault(gemm, Map.of()).containsKey("method");
      if (fusible && given && !method.equals(BULK) && modes.size() > 1) {
        broken(
            gemm,
            Rule.FUSED_DGRAD_OF_MODES,
            "method must be bulk with %d quantization modes but was %s; take bulk, or one mode"
                .formatted(modes.size(), method));
      }
      var wgrad = gemm.replace("dgrad", "wgrad");
      if (fusible && !method.equals(BULK) && entries.containsKey(wgrad)) {
        broken(
            wgrad,
            Rule.WGRAD_OF_FUSED_DGRAD,
            "it has an entry although %s is %s, not bulk; remove one of both"
                .formatted(gemm, method));
      }
    }

    private void atomic(String gemm, String method) {
      if (!isSet(gemm, "atomic_gemm")) {
        return;
      }
      if (mode != Mode.FP8) {
        broken(gemm, Rule.ATOMIC_TYPE, "atomic_gemm needs FP8 but the layers are not; remove it");
      }
      for (var pair : ATOMIC_PAIRS.entrySet()) {
        if (gemm.equals(pair.getKey()) || gemm.equals(pair.getValue())) {
          var partner = gemm.equals(pair.getKey()) ? pair.getValue() : pair.getKey();
          boolean both = isSet(partner, "atomic_gemm") && method(partner).equals(RING);
          if (method.equals(RING) && !both) {
            broken(
                gemm,
                Rule.ATOMIC_PAIR,
                "atomic_gemm by ring_exchange needs the same of %s; set it there or remove it here"
                    .formatted(partner));
          }
        }
      }
    }

    private void withoutEffect(String gemm, String method) {
      var ignored = new LinkedHashMap<String, String>();
      if (!method.equals(RING)) {
        ignored.put("use_ce", "only ring_exchange uses copy engines");
        ignored.put("aggregate", "only ring_exchange joins chunks");
      } else {
        ignored.put("num_splits", "a ring has a chunk per rank");
      }
      if (!method.equals(PIPELINE)) {
        ignored.put("pipeline_rs_overlap_first_gemm", "only pipeline has it");
      }
      boolean scattering = defaultMethod(gemm).equals(PIPELINE);
      boolean pipelined = FUSIBLE_DGRADS.contains(gemm) && method.equals(PIPELINE);
      if (!scattering && !pipelined) {
        ignored.put("fp8_buf", "it follows from the GEMM");
      }
      if (method.equals(BULK) || method.equals(EXTERNAL)) {
        ignored.put("atomic_gemm", "a bulk or external overlap has no atomic GEMM");
      }
      var keys = entries.getOrDefault(gemm, Map.of());
      ignored.forEach(
          (key, reason) -> {
            if (keys.containsKey(key)) {
              broken(
                  gemm,
                  Rule.NO_EFFECT,
                  "%s has no effect on %s: %s; remove it".formatted(key, method, reason));
            }
          });
    }
  }

  @Override
  public String toString() {
    return "%s, %s%s"
        .formatted(
            VERSION,
            modes.stream().map(Mode::toString).collect(Collectors.joining(" + ")),
            overCublasMp ? ", cuBLASMp" : "");
  }
}
