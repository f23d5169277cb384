package braid.launcher.compile;

import java.util.function.Predicate;

/// The other kind of cells, whose declarations this kind does not see: rank cells and `%%front`
/// cells have variables of their own.
///
/// @param kind name of the other kind, for messages
/// @param remedy how to write such a cell
/// @param declares returns whether the other kind has declared a name
public record OtherCells(String kind, String remedy, Predicate<String> declares) {
  /// Returns the cells of the ranks, as seen from a `%%front` cell.
  public static OtherCells ranks(Predicate<String> declares) {
    return new OtherCells("rank cells", "leave out %%front", declares);
  }

  /// Returns the `%%front` cells, as seen from a cell of the ranks.
  public static OtherCells front(Predicate<String> declares) {
    return new OtherCells("%%front cells", "begin the cell with %%front", declares);
  }

  String hint(String name) {
    return "`%s` exists in %s only; %s".formatted(name, kind, remedy);
  }
}
