package braid.launcher.notebook.check;

/// A difference between a cell's outputs and its recording. `cell` is "cell 3".
public record Difference(String cell, String what, String expected, String got) {
  @Override
  public String toString() {
    return "%s: %s: expected %s; got %s".formatted(cell, what, expected, got);
  }
}
