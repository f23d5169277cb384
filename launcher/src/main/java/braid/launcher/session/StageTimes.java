package braid.launcher.session;

/// Time per stage, summed over all cells of a session. Compilation excludes requests to the ranks.
public record StageTimes(
    long splitNanos, long compileNanos, long loadNanos, long runNanos, long outputNanos) {}
