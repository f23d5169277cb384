package braid.schedule;

import braid.model.BraidException;
import braid.model.Overlap;
import braid.model.Transport;

/// A queue of each rank, executed by a stream: its steps run in order, concurrently with those of
/// other lanes. Over [Transport#ONE_KERNEL] a GPU runs a copy or a sum together with the signals
/// and waits right before and after it.
///
/// @param yielding true if other lanes of the rank have priority
/// @param transport transport of its copies between ranks, or the library of its calls
/// @param workers number of compute units of the transport; 0 except over [Transport#WORKERS] and
///   [Transport#CUBLASMP]
/// @param reserved number of compute units that its multiplications leave to other lanes
public record Lane(
    String name, Role role, boolean yielding, Transport transport, int workers, int reserved) {
  /// The kind of work of a lane.
  public enum Role {
    /// Copies between ranks and signals.
    COMMUNICATION,
    /// Sums and copies of communicated data.
    COMPLETION,
    /// Multiplications.
    COMPUTE
  }

  public Lane {
    int least = transport == Transport.WORKERS ? 1 : 0;
    if (workers < least || workers > Overlap.MAX_WORKERS) {
      throw new BraidException(
          "workers of lane `%s` over %s must be %d..%d but were %d; try %d"
              .formatted(
                  name,
                  transport,
                  least,
                  Overlap.MAX_WORKERS,
                  workers,
                  Math.clamp(workers, least, Overlap.MAX_WORKERS)));
    }
    if (reserved < 0) {
      throw new BraidException(
          "reserved compute units of lane `%s` must be 0 or more but were %d; try 0"
              .formatted(name, reserved));
    }
  }

  /// Returns a lane for computation, or for copies by a copy engine.
  public static Lane of(String name, Role role) {
    return new Lane(name, role, false, Transport.COPY_ENGINE, 0, 0);
  }

  /// Returns a lane that communicates over a transport, such as a library for [Program#call].
  public static Lane of(String name, Transport transport) {
    int workers = transport == Transport.WORKERS ? Overlap.DEFAULT_WORKERS : 0;
    return new Lane(name, Role.COMMUNICATION, false, transport, workers, 0);
  }

  @Override
  public String toString() {
    return name;
  }
}
