package braid.launcher.cli.doctor;

import braid.Capabilities;
import braid.internal.cuda.memory.CudaMemory;
import braid.launcher.machine.Gpus;
import braid.model.BackendKind;
import braid.model.MemoryKind;
import braid.natives.load.Feature;
import braid.natives.load.Feature.Component;
import braid.natives.load.FoundLibrary;
import braid.natives.load.Libraries;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/// Features of GPUs with the smallest version that each needs and the version that was found, and
/// kinds of memory with the hosts that they span. The same list refuses features in ranks.
///
/// @param found versions of this machine; empty for a missing component
record FeatureTable(Function<Component, Optional<String>> found) {
  private static final String NONE = "–";

  /// A row of the table.
  ///
  /// @param feature empty for memory on the host, which needs nothing
  /// @param span empty for a feature that is no memory
  private record Row(String title, Optional<Feature> feature, Optional<MemoryKind.Span> span) {}

  /// Looks for versions on this machine. Loads no library without a GPU.
  static FeatureTable of(Gpus gpus) {
    return new FeatureTable(component -> version(component, gpus));
  }

  private static Optional<String> version(Component component, Gpus gpus) {
    if (gpus.count() == 0) {
      return Optional.empty();
    }
    return component.library().isPresent()
        ? component.library().flatMap(Libraries::find).map(FoundLibrary::version)
        : component.equals(Component.GPU) ? gpus.capability() : gpus.cuda();
  }

  /// Returns why the kind's library is too old; empty if it is not.
  Optional<String> refusal(MemoryKind kind) {
    return refusal(CudaMemory.feature(kind));
  }

  private Optional<String> refusal(Feature feature) {
    return found.apply(feature.component()).flatMap(feature::refusal);
  }

  private static List<Row> rows() {
    var rows = new ArrayList<Row>();
    for (var feature : Feature.values()) {
      rows.add(new Row(feature.title(), Optional.of(feature), Optional.empty()));
    }
    rows.add(
        new Row(
            "memory native, host",
            Optional.empty(),
            Optional.of(MemoryKind.NATIVE.span(BackendKind.HOST))));
    for (var kind : Capabilities.kinds()) {
      rows.add(
          new Row(
              "memory " + kind + (kind == MemoryKind.NATIVE ? ", GPUs" : ""),
              Optional.of(CudaMemory.feature(kind)),
              Optional.of(kind.span(BackendKind.CUDA))));
    }
    return rows;
  }

  List<String> lines() {
    var table = new ArrayList<List<String>>();
    table.add(List.of("", "needs", "found", "memory spans"));
    var refused = new ArrayList<String>();
    var before = "";
    for (var row : rows()) {
      table.add(
          List.of(
              row.title.equals(before) ? "" : row.title,
              row.feature.map(Feature::needs).orElse(NONE),
              row.feature.map(Feature::component).flatMap(found).orElse(NONE),
              row.span.map(MemoryKind.Span::toString).orElse("")));
      row.feature
          .flatMap(this::refusal)
          .ifPresent(why -> refused.add("  refused: %s %s".formatted(row.title, why)));
      before = row.title;
    }
    var lines = new ArrayList<>(List.of("Features and the smallest versions that they need:"));
    lines.addAll(AbilityGrid.aligned(table));
    lines.addAll(refused);
    return lines;
  }

  JsonArray json() {
    var all = new JsonArray();
    for (var row : rows()) {
      var json = new JsonObject();
      json.addProperty("feature", row.title);
      json.addProperty("component", row.feature.map(each -> each.component().title()).orElse(null));
      json.addProperty("minimum", row.feature.map(Feature::minimum).orElse(null));
      json.addProperty("found", row.feature.map(Feature::component).flatMap(found).orElse(null));
      json.addProperty("refused", row.feature.flatMap(this::refusal).orElse(null));
      json.addProperty("spans", row.span.map(MemoryKind.Span::toString).orElse(null));
      all.add(json);
    }
    return all;
  }
}
