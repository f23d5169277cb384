package braid.launcher.cell;

/// What is run at once: Java, magics, or both. `name` is how messages refer to it, for example
/// "cell 3".
public record Cell(String name, String source) {}
