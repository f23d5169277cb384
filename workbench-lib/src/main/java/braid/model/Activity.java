package braid.model;

/// One kernel, copy or fill of a GPU. Times are as in spans.
///
/// @param engine unit that ran it: a kernel by its name with its blocks, such as
///   `ncclDevKernel_AllGather <<<24>>>`, a copy engine, or the multiprocessors
/// @param bytes bytes that a copy or a fill wrote; of a kernel, those of its step if nothing else
///   ran in the step, else 0
public record Activity(Kind kind, String engine, long startNanos, long endNanos, long bytes) {
  /// Kinds of activities.
  public enum Kind {
    KERNEL,
    COPY,
    FILL
  }

  public long nanos() {
    return endNanos - startNanos;
  }
}
