package braid.schedule;

import java.util.List;

/// Regions that the caller of a schedule writes before an iteration or reads after it.
///
/// @param given true if the caller writes it; false if the iteration writes every row of it
/// @param regions by rank
public record Port(String name, boolean given, List<Region> regions) {
  public Port {
    regions = List.copyOf(regions);
  }

  public Region on(int rank) {
    return regions.get(rank);
  }
}
