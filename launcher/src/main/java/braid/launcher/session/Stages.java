package braid.launcher.session;

/// Where the time of cells goes, summed over all cells of a session so far. Compiling is what
/// JShell does, asking the ranks left out.
public record Stages(
    long splitNanos, long compileNanos, long loadNanos, long runNanos, long outputNanos) {}
