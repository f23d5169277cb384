package braid.schedule;

import braid.model.BraidException;

/// Words on every rank that other ranks raise and the rank itself waits for. In one iteration one
/// signal raises a word; a lane that waited for it need not wait again.
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
