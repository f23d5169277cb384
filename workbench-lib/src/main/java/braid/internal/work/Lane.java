package braid.internal.work;

import braid.Transport;

/// What a stream is made for.
///
/// @param yielding whether other streams of the rank go first
/// @param transport what its copies from and to other ranks go over
/// @param workers compute units of the transport; 0 for copy engines
/// @param reserved compute units that its multiplications leave to other streams
public record Lane(String name, boolean yielding, Transport transport, int workers, int reserved) {
  /// A stream that computes, or copies by a copy engine.
  public static Lane of(String name) {
    return new Lane(name, false, Transport.COPY_ENGINE, 0, 0);
  }
}
