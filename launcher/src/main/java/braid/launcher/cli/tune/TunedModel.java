package braid.launcher.cli.tune;

import braid.evidence.Decision;
import braid.export.Export;
import braid.export.MegatronExport;
import braid.export.TunedGemm;
import braid.export.VllmExport;
import braid.launcher.OutputFile;
import braid.launcher.cli.home.WorkingDirectory;
import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.natives.WholeFile;
import braid.shapes.ModelShapes;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// The GEMMs of a model's layer, and the files that their decisions are exported to.
///
/// @param gemms GEMM of each layer and direction, by name; of two forms, the one in bulk
/// @param notes lines on what is not tuned
/// @param exports files by target
record TunedModel(
    SequencedMap<String, GemmSpec> gemms, List<String> notes, Map<String, Path> exports) {
  static final String MEGATRON = "megatron";
  static final String VLLM = "vllm";

  /// @param named targets with their files: `megatron=tp4.yaml`
  static TunedModel of(ModelShapes shapes, List<String> named) {
    var gemms = new LinkedHashMap<String, GemmSpec>();
    var notes = new ArrayList<String>();
    for (var operation : shapes.operations()) {
      var before = gemms.putIfAbsent(operation.gemm(), operation.spec());
      if (before != null) {
        boolean bulk = before.pattern().beside();
        gemms.put(operation.gemm(), bulk ? before : operation.spec());
        notes.add(
            "%s is tuned as %s; its other form, %s, is not"
                .formatted(
                    operation.gemm(),
                    gemms.get(operation.gemm()).pattern(),
                    (bulk ? operation.spec() : before).pattern()));
      }
    }
    shapes.refused().forEach(refusal -> notes.add("not tuned: " + refusal));
    shapes
        .attention()
        .filter(_ -> shapes.cp() > 1)
        .ifPresent(
            spec ->
                notes.add(
                    "attention runs on %d ranks of its own: braid tune attention %d --heads %d --kv-heads %d --head-size %d --causal --fused %s --dtype %s -n %1$d"
                        .formatted(
                            shapes.cp(),
                            spec.sequence(),
                            spec.heads(),
                            spec.kvHeads(),
                            spec.headSize(),
                            spec.fused(),
                            spec.dtype())));
    var exports = exports(named);
    if (exports.containsKey(MEGATRON)) {
      notes.add(
          "only methods that Transformer Engine has are searched, for --export %s"
              .formatted(MEGATRON));
    }
    return new TunedModel(gemms, notes, exports);
  }

  private static Map<String, Path> exports(List<String> named) {
    var exports = new LinkedHashMap<String, Path>();
    for (var text : named) {
      var parts = text.split("=", 2);
      if (parts.length < 2 || parts[1].isBlank() || !List.of(MEGATRON, VLLM).contains(parts[0])) {
        throw new BraidException(
            "--export must be %s=FILE or %s=FILE but was `%s`; for example megatron=tp4.yaml"
                .formatted(MEGATRON, VLLM, text));
      }
      var file = OutputFile.writable("--export " + parts[0], WorkingDirectory.resolve(parts[1]));
      if (exports.containsValue(file) || exports.put(parts[0], file) != null) {
        throw new BraidException(
            "--export must name each target and each file once but was `%s`; remove one"
                .formatted(String.join(" ", named)));
      }
    }
    return exports;
  }

  List<TunedProblem> problems() {
    boolean some = exports.containsKey(MEGATRON);
    return gemms.values().stream()
        .distinct()
        .map(
            spec ->
                some
                    ? TunedProblem.of(spec).among(MegatronExport.methods(spec.pattern()))
                    : TunedProblem.of(spec))
        .toList();
  }

  /// Writes the exports of the decisions, and returns a line for each file and each GEMM that is
  /// not decided.
  List<String> export(List<Decision> decisions) throws IOException {
    var tuned = new LinkedHashMap<String, TunedGemm>();
    var lines = new ArrayList<String>();
    gemms.forEach(
        (name, spec) ->
            decisions.stream()
                .filter(decision -> decision.problem().equals(spec.toString()))
                .findFirst()
                .ifPresentOrElse(
                    decision -> tuned.put(name, TunedGemm.of(spec, decision)),
                    () -> lines.add("undecided %s; raise --budget".formatted(name))));
    for (var export : exports.entrySet()) {
      boolean megatron = export.getKey().equals(MEGATRON);
      if (megatron ? tuned.isEmpty() : forward(tuned).isEmpty()) {
        lines.add("not written %s: it needs a decision and has none".formatted(export.getValue()));
        continue;
      }
      Export written =
          megatron ? MegatronExport.yaml(tuned) : VllmExport.compilationConfig(forward(tuned));
      WholeFile.write(export.getValue(), written.text());
      lines.add("%s %s".formatted(export.getKey(), export.getValue()));
      written.omitted().forEach(line -> lines.add("  not expressed: " + line));
    }
    return lines;
  }

  private static List<TunedGemm> forward(Map<String, TunedGemm> tuned) {
    return tuned.entrySet().stream()
        .filter(each -> each.getKey().endsWith("_fprop"))
        .map(Map.Entry::getValue)
        .toList();
  }
}
