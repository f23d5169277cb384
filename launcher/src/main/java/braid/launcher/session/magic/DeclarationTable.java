package braid.launcher.session.magic;

import braid.internal.report.value.Grid;
import java.util.Set;
import java.util.stream.Collectors;
import jdk.jshell.JShell;
import jdk.jshell.VarSnippet;

/// `%who`: declarations of the cells, and values of simple variables on rank 0.
public final class DeclarationTable {
  /// Types whose short text runs no code of a cell.
  private static final Set<String> SIMPLE =
      Set.of(
          "int", "long", "double", "float", "boolean", "char", "short", "byte", "String", "Integer",
          "Long", "Double", "Float", "Boolean");

  private static final int VALUE_LENGTH = 40;

  private DeclarationTable() {}

  public static String in(JShell shell) {
    var grid = Grid.of("name", "type", "value on rank 0");
    shell
        .variables()
        .filter(variable -> !isResult(variable))
        .forEach(v -> grid.row(v.name(), v.typeName(), value(shell, v)));
    shell.methods().forEach(m -> grid.row(m.name() + "()", m.signature(), ""));
    shell
        .types()
        .forEach(
            t ->
                grid.row(
                    t.name(),
                    t.subKind().name().replace("_SUBKIND", "").toLowerCase(java.util.Locale.ROOT),
                    ""));
    long results = shell.variables().filter(DeclarationTable::isResult).count();
    if (results > 0) {
      grid.note(
          results + (results == 1 ? " result" : " results") + " shown so far, as $1 and so on");
    }
    return grid.isEmpty() ? "no cell has declared anything\n" : grid.text() + "\n";
  }

  private static boolean isResult(VarSnippet variable) {
    return variable.name().startsWith("$");
  }

  private static String value(JShell shell, VarSnippet variable) {
    if (!SIMPLE.contains(variable.typeName())) {
      return "";
    }
    var value = shell.varValue(variable).lines().collect(Collectors.joining(" "));
    return value.length() <= VALUE_LENGTH ? value : value.substring(0, VALUE_LENGTH) + "…";
  }
}
