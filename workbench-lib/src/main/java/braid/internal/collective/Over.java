package braid.internal.collective;

import braid.Transport;

/// What collectives go over.
///
/// @param workers compute units of the transport; 0 for copy engines
public record Over(Transport transport, int workers) {
  @Override
  public String toString() {
    return workers == 0 ? transport.toString() : "%s workers=%d".formatted(transport, workers);
  }
}
