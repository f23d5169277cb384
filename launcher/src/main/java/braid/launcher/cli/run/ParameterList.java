package braid.launcher.cli.run;

import braid.launcher.Counted;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.ParameterCell;
import braid.launcher.notebook.parameters.DeclaredParameter;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/// Parameters of a notebook for `--help-notebook`, one line each.
public final class ParameterList {
  private ParameterList() {}

  public static List<String> of(Notebook notebook) {
    var parameters = DeclaredParameter.of(ParameterCell.declaring(notebook));
    var lines = new ArrayList<String>();
    if (parameters.isEmpty()) {
      lines.add(
          notebook.name()
              + ": no parameters; declare them in a cell tagged parameters to have them here");
      return lines;
    }
    lines.add("%s: %s".formatted(notebook.name(), Counted.of(parameters.size(), "parameter")));
    int names = width(parameters, DeclaredParameter::name);
    int types = width(parameters, DeclaredParameter::type);
    int values = width(parameters, DeclaredParameter::value);
    for (var p : parameters) {
      var comment = p.settable() ? p.comment() : (p.comment() + " (cannot be given)").strip();
      lines.add(
          ("  "
                  + padded(p.name(), names)
                  + padded(p.type(), types)
                  + padded(p.value(), values)
                  + comment)
              .stripTrailing());
    }
    parameters.stream()
        .filter(DeclaredParameter::settable)
        .findFirst()
        .ifPresent(p -> lines.add("for example -p %s=%s".formatted(p.name(), p.example())));
    return lines;
  }

  private static int width(
      List<DeclaredParameter> parameters, Function<DeclaredParameter, String> column) {
    return parameters.stream().map(column).mapToInt(String::length).max().orElse(0);
  }

  private static String padded(String text, int width) {
    return text + " ".repeat(width - text.length() + 2);
  }
}
