package braid.launcher.cell;

/// A unit of execution: Java, magics, or both. `name` identifies it in messages, for example "cell
/// 3".
public record Cell(String name, String source) {}
