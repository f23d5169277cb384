package braid.launcher.cell;

/// A unit of execution: Java, magics, or both. `name` identifies it in messages, for example "cell
/// 3".
///
/// @param isProgram whether it runs a whole program, in which ranks drift apart by seconds
public record Cell(String name, String source, boolean isProgram) {
  public Cell(String name, String source) {
    this(name, source, false);
  }
}
