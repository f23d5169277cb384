package braid.launcher.notebook;

import braid.launcher.Nearest;
import braid.launcher.notebook.parameters.DeclaredParameter;
import braid.launcher.notebook.parameters.Injection;
import braid.launcher.notebook.parameters.Parameters;
import braid.model.BraidException;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Injects parameters into a notebook as papermill does: into the cell tagged `injected-parameters`
/// of an earlier run, else after the cell tagged `parameters`, else at the top.
public final class ParameterCell {
  private ParameterCell() {}

  /// @return notes for the user
  /// @throws braid.model.BraidException if the notebook does not declare a name, or not of that
  ///   type
  public static Optional<String> inject(Parameters parameters, Notebook notebook) {
    if (parameters.isEmpty()) {
      return Optional.empty();
    }
    int declaring = firstTagged(notebook, NotebookCell.PARAMETERS);
    var injection =
        Injection.of(
            parameters,
            declaring < 0 ? null : notebook.cells().get(declaring).source(),
            notebook.name());
    int earlier = firstTagged(notebook, NotebookCell.INJECTED_PARAMETERS);
    if (earlier >= 0) {
      var cell = notebook.cells().get(earlier);
      cell.source(injection.source());
      cell.clearOutputs();
    } else {
      var cell =
          notebook.insertCode(declaring + 1, injection.source(), NotebookCell.INJECTED_PARAMETERS);
      var tags = new JsonArray();
      tags.add(NotebookCell.INJECTED_PARAMETERS);
      cell.metadata().add("tags", tags);
    }
    notebook.papermill().add("parameters", json(injection.values()));
    return declaring >= 0
        ? Optional.empty()
        : Optional.of(
            notebook.name()
                + " has no cell tagged parameters, so "
                + String.join(", ", injection.values().keySet())
                + " was declared at its top; tag the declaring cell to have it checked");
  }

  /// Injects parameters into several notebooks of one run: each gets the parameters that it
  /// declares, and each parameter must be declared by at least one.
  ///
  /// @return notes for the user
  /// @throws braid.model.BraidException if none declares a name, or one not of that type
  public static List<String> inject(Parameters parameters, List<Notebook> notebooks) {
    if (notebooks.size() == 1) {
      return inject(parameters, notebooks.getFirst()).stream().toList();
    }
    var declared = new TreeSet<String>();
    notebooks.forEach(notebook -> declared.addAll(declared(notebook)));
    for (var name : parameters.names()) {
      if (!declared.contains(name)) {
        throw new BraidException(
            "parameter %s must be declared in a cell tagged parameters of one of the %d notebooks, but %s"
                .formatted(
                    name,
                    notebooks.size(),
                    declared.isEmpty()
                        ? "none declares any; declare it there"
                        : "they declare %s; did you mean %s?"
                            .formatted(String.join(", ", declared), Nearest.to(name, declared))));
      }
    }
    for (var notebook : notebooks) {
      var _ = inject(parameters.only(declared(notebook)), notebook);
    }
    return List.of();
  }

  private static Set<String> declared(Notebook notebook) {
    return DeclaredParameter.of(declaring(notebook)).stream()
        .map(DeclaredParameter::name)
        .collect(Collectors.toSet());
  }

  /// Source of the cell that declares the notebook's parameters; empty if there is none.
  public static String declaring(Notebook notebook) {
    int index = firstTagged(notebook, NotebookCell.PARAMETERS);
    return index < 0 ? "" : notebook.cells().get(index).source();
  }

  /// Returns the parameters of a notebook for a run: the type of each, its value as Java source,
  /// and whether the value was given or is the notebook's default.
  public static JsonObject values(Notebook notebook) {
    var values = new JsonObject();
    for (var tag : List.of(NotebookCell.PARAMETERS, NotebookCell.INJECTED_PARAMETERS)) {
      notebook.cells().stream()
          .filter(cell -> cell.isCode() && cell.hasTag(tag))
          .flatMap(cell -> DeclaredParameter.of(cell.source()).stream())
          .filter(declared -> !declared.value().isEmpty())
          .forEach(
              declared -> {
                var value = new JsonObject();
                value.addProperty("type", declared.type());
                value.addProperty("value", declared.value());
                value.addProperty("given", tag.equals(NotebookCell.INJECTED_PARAMETERS));
                values.add(declared.name(), value);
              });
    }
    return values;
  }

  private static int firstTagged(Notebook notebook, String tag) {
    var cells = notebook.cells();
    for (int i = 0; i < cells.size(); i++) {
      if (cells.get(i).isCode() && cells.get(i).hasTag(tag)) {
        return i;
      }
    }
    return -1;
  }

  private static JsonElement json(@Nullable Object value) {
    return switch (value) {
      case null -> JsonNull.INSTANCE;
      case Boolean truth -> new JsonPrimitive(truth);
      // JSON cannot represent them
      case Double number when !Double.isFinite(number) -> new JsonPrimitive(number.toString());
      case Number number -> new JsonPrimitive(number);
      case List<?> list -> {
        var array = new JsonArray();
        list.forEach(item -> array.add(json(item)));
        yield array;
      }
      case Map<?, ?> map -> {
        var object = new JsonObject();
        map.forEach((key, item) -> object.add(String.valueOf(key), json(item)));
        yield object;
      }
      default -> new JsonPrimitive(value.toString());
    };
  }
}
