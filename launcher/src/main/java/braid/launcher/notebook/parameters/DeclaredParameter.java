package braid.launcher.notebook.parameters;

import java.util.ArrayList;
import java.util.List;

/// A parameter as a notebook declares it.
///
/// @param type as declared, or as inferred from its value
/// @param value its default as written; empty if it has none
/// @param comment its comment in the cell
/// @param settable whether a value of its type can be given from outside
/// @param example a value as `-p` takes it
public record DeclaredParameter(
    String name, String type, String value, String comment, boolean settable, String example) {
  /// Returns the parameters of a cell, in order.
  ///
  /// @param cell the source of the cell tagged `parameters`
  public static List<DeclaredParameter> of(String cell) {
    var parameters = new ArrayList<DeclaredParameter>();
    Declarations.described(cell)
        .forEach(
            (name, declared) ->
                parameters.add(
                    new DeclaredParameter(
                        name,
                        declared.type().source(),
                        declared.value(),
                        declared.comment(),
                        !(declared.type() instanceof JavaType.Unsettable),
                        declared.type().example())));
    return parameters;
  }
}
