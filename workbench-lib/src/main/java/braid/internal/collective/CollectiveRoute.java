package braid.internal.collective;

import braid.model.CollectiveWay;

/// What collectives go over.
///
/// @param workers compute units that communicate; 0 where none do, or a library decides
public record CollectiveRoute(CollectiveWay way, int workers) {
  @Override
  public String toString() {
    return workers == 0 ? way.toString() : "%s workers=%d".formatted(way, workers);
  }
}
