package braid.model;

/// A stretch of one rank's time. Times are nanoseconds on the group's common clock, from the start
/// of the profile; `chunk` is -1 where the work belongs to no chunk. `bytes` and `flops` are what
/// was moved and computed in it.
///
/// @param engine what did it, where the backend can tell: on GPUs a copy engine, or the kernel by
///   its name with its blocks, such as `ncclDevKernel_AllGather <<<24>>>`; else empty
public record Span(
    int iteration,
    int chunk,
    Stage stage,
    String stream,
    long startNanos,
    long endNanos,
    long bytes,
    long flops,
    String engine) {
  /// A span of which nobody says what did it.
  public Span(
      int iteration,
      int chunk,
      Stage stage,
      String stream,
      long startNanos,
      long endNanos,
      long bytes,
      long flops) {
    this(iteration, chunk, stage, stream, startNanos, endNanos, bytes, flops, "");
  }

  /// The same on a stream of another name.
  public Span on(String other) {
    return other.equals(stream)
        ? this
        : new Span(iteration, chunk, stage, other, startNanos, endNanos, bytes, flops, engine);
  }

  public long nanos() {
    return endNanos - startNanos;
  }
}
