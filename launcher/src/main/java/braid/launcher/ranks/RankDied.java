package braid.launcher.ranks;

import braid.model.BraidException;

/// Failure of a request to a dead rank.
public final class RankDied extends BraidException {
  private final transient Death death;

  public RankDied(Death death) {
    super(death.toString());
    this.death = death;
  }

  public Death death() {
    return death;
  }
}
