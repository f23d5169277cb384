package braid.launcher.wire;

/// First message of a rank on each of its two connections, after the proof of the token. It
/// contains the rank, because ranks connect in any order.
public record Hello(int rank, long pid, boolean control) {}
