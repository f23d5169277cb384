package braid.schedule;

import braid.Transport;

/// A queue of each rank whose steps run one after the other, beside those of other lanes: a stream.
///
/// @param yielding whether other lanes of the rank go first
/// @param transport of its copies between ranks
/// @param workers compute units of the transport; 0 for copy engines
/// @param reserved compute units that its multiplications leave to other lanes
public record Lane(
    String name, Role role, boolean yielding, Transport transport, int workers, int reserved) {
  /// The kind of work that a lane is for.
  public enum Role {
    /// Copies between ranks and signals.
    COMMUNICATION,
    /// Sums and copies of what was communicated.
    COMPLETION,
    /// Multiplications.
    COMPUTE
  }

  /// A lane for computing, or for copies by a copy engine.
  public static Lane of(String name, Role role) {
    return new Lane(name, role, false, Transport.COPY_ENGINE, 0, 0);
  }

  @Override
  public String toString() {
    return name;
  }
}
