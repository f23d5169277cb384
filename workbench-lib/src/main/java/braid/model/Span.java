package braid.model;

/// An interval of one rank's time. Times are nanoseconds on the group's common clock, from the
/// start of the profile; `chunk` is -1 for work that belongs to no chunk. `bytes` and `flops` count
/// the data moved and the operations computed in it.
///
/// @param engine unit that did the work, if the backend reports it: on GPUs a copy engine, or the
///   kernel by its name with its blocks, such as `ncclDevKernel_AllGather <<<24>>>`; else empty
/// @param label short name of the schedule's step, such as `fetch 1 @2` or `wait @2`, in which `@2`
///   is the rank at the other end; empty if unknown
public record Span(
    int iteration,
    int chunk,
    Stage stage,
    String stream,
    long startNanos,
    long endNanos,
    long bytes,
    long flops,
    String engine,
    String label) {
  /// Creates a span without a label.
  public Span(
      int iteration,
      int chunk,
      Stage stage,
      String stream,
      long startNanos,
      long endNanos,
      long bytes,
      long flops,
      String engine) {
    this(iteration, chunk, stage, stream, startNanos, endNanos, bytes, flops, engine, "");
  }

  /// Creates a span whose engine is unknown, without a label.
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
        : new Span(
            iteration, chunk, stage, other, startNanos, endNanos, bytes, flops, engine, label);
  }

  /// Returns the span with another label.
  public Span labelled(String other) {
    return new Span(
        iteration, chunk, stage, stream, startNanos, endNanos, bytes, flops, engine, other);
  }

  public long nanos() {
    return endNanos - startNanos;
  }
}
