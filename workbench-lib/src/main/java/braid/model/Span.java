package braid.model;

import java.util.List;
import java.util.stream.Collectors;

/// An interval of one rank's time. Times are nanoseconds on the group's common clock, from the
/// start of the profile; `chunk` is -1 for work that belongs to no chunk. `bytes` and `flops` count
/// the data moved and the operations computed in it.
///
/// @param activities every kernel, copy and fill of the step, in order of their start, if the
///   backend reports them, as GPUs do; they lie within the span and may run side by side
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
    List<Activity> activities,
    String label) {
  public Span {
    activities = List.copyOf(activities);
  }

  /// Creates a span whose activities are unknown, without a label.
  public Span(
      int iteration,
      int chunk,
      Stage stage,
      String stream,
      long startNanos,
      long endNanos,
      long bytes,
      long flops) {
    this(iteration, chunk, stage, stream, startNanos, endNanos, bytes, flops, List.of(), "");
  }

  /// Returns the span on a stream of another name.
  public Span on(String other) {
    return other.equals(stream)
        ? this
        : new Span(
            iteration, chunk, stage, other, startNanos, endNanos, bytes, flops, activities, label);
  }

  /// Returns the span with another label.
  public Span labelled(String other) {
    return new Span(
        iteration, chunk, stage, stream, startNanos, endNanos, bytes, flops, activities, other);
  }

  /// Returns the engines of its activities, each once, in order of their first start; empty if they
  /// are unknown.
  public String engine() {
    return activities.stream().map(Activity::engine).distinct().collect(Collectors.joining(", "));
  }

  public long nanos() {
    return endNanos - startNanos;
  }
}
