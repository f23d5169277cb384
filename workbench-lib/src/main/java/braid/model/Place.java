package braid.model;

/// A rank's place in a group. One type, so that rank and size cannot be swapped at a call.
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
