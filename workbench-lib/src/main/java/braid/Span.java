package braid;

/// A stretch of one rank's time. Times are nanoseconds on the group's common clock, from the start
/// of the profile; `chunk` is -1 where the work belongs to no chunk. `bytes` and `flops` are what
/// was moved and computed in it.
public record Span(
    int iteration,
    int chunk,
    Stage stage,
    String stream,
    long startNanos,
    long endNanos,
    long bytes,
    long flops) {
  public long nanos() {
    return endNanos - startNanos;
  }
}
