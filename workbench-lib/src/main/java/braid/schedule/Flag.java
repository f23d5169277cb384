package braid.schedule;

import braid.model.BraidException;

/// Signal words on every rank, raised by other ranks and waited for by the rank itself. One signal
/// raises a word in an iteration; a lane that has waited for it does not wait again.
public record Flag(String name, int words) {
  public Flag {
    if (words < 1) {
      throw new BraidException(
          "a flag must have 1 or more words but `%s` has %d".formatted(name, words));
    }
  }

  @Override
  public String toString() {
    return name;
  }
}
