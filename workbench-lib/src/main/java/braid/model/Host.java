package braid.model;

import java.util.List;

/// A host of a group: its name and its ranks' numbers in the group, ascending. Ranks of one host
/// share memory.
public record Host(String name, List<Integer> ranks) {
  public Host {
    ranks = List.copyOf(ranks);
  }

  @Override
  public String toString() {
    return "%s %s".formatted(name, ranks);
  }
}
