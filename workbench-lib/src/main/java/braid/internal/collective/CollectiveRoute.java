package braid.internal.collective;

import braid.model.CollectiveWay;

/// Mechanism that moves the bytes of collectives.
///
/// @param workers compute units that communicate; 0 if none do, or if a library decides
public record CollectiveRoute(CollectiveWay way, int workers) {
  @Override
  public String toString() {
    return workers == 0 ? way.toString() : "%s workers=%d".formatted(way, workers);
  }
}
