package braid.model;

/// Rank and size of a group. One type, so that the two cannot be swapped in a call.
public record Place(int rank, int size) {
  public Place {
    if (size < 1 || rank < 0 || rank >= size) {
      throw new BraidException(
          "rank must be 0.." + (size - 1) + " but was " + rank + " of " + size);
    }
  }

  @Override
  public String toString() {
    return rank + "/" + size;
  }
}
