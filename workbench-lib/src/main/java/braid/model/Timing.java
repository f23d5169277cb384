package braid.model;

import java.util.Locale;

/// Forms of timing. Both run the same work in the same order on every stream; they differ in what
/// happens between two iterations.
public enum Timing {
  /// Iterations in flight: each is enqueued while earlier ones still run, and begins on the device
  /// when the one before has ended on all of the rank's streams. A sample is the time between the
  /// ends of two consecutive iterations on that rank, taken by events of the device, on the host by
  /// the stream's thread. The first sample begins when the first iteration is enqueued on idle
  /// streams, so it contains launch overhead and the skew of the ranks. The default on GPUs: a
  /// training loop does not wait for the host between iterations either.
  BACK_TO_BACK,

  /// One iteration at a time: a sample is the time from enqueuing an iteration until this rank's
  /// host thread has seen it end. It contains launch overhead and one synchronization. The default
  /// on the host backend: there the streams are threads on the rank's own cores, so a thread that
  /// enqueues beside them takes time from what is measured, and there is no device to keep busy.
  LATENCY;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
