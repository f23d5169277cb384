package braid.model;

/// An interval of one rank's time. Times are nanoseconds on the group's common clock, from the
/// start of the profile; `chunk` is -1 for work that belongs to no chunk. `bytes` and `flops` count
/// the data moved and the operations computed in it.
///
/// @param engine unit that did the work, if the backend reports it: on GPUs a copy engine, or the
///   kernel by its name with its blocks, such as `ncclDevKernel_AllGather <<<24>>>`; else empty
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
  /// Creates a span whose engine is unknown.
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

  /// Returns the span on a stream of another name.
  public Span on(String other) {
    return other.equals(stream)
        ? this
        : new Span(iteration, chunk, stage, other, startNanos, endNanos, bytes, flops, engine);
  }

  public long nanos() {
    return endNanos - startNanos;
  }
}
