package braid.launcher.notebook.check;

/// One way in which a cell did not do what is recorded of it. `cell` is "cell 3".
public record Difference(String cell, String what, String expected, String got) {
  @Override
  public String toString() {
    return "%s: %s: expected %s; got %s".formatted(cell, what, expected, got);
  }
}
