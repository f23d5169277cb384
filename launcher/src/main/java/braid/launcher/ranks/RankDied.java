package braid.launcher.ranks;

import braid.model.BraidException;

/// A request that a rank can no longer answer.
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
