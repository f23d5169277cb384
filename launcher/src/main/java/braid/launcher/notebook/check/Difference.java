package braid.launcher.notebook.check;

/// A difference between a cell's outputs and the recorded ones.
///
/// @param cell name of the cell, such as "cell 3"
/// @param what what differs, such as "printed text"
public record Difference(String cell, String what, String expected, String got) {
  @Override
  public String toString() {
    return "%s: %s: expected %s; got %s".formatted(cell, what, expected, got);
  }
}
