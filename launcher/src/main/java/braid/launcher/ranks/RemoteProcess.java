package braid.launcher.ranks;

import java.util.Optional;

/// A rank's process that another process started, perhaps on another host.
public abstract class RemoteProcess extends Process {
  /// Name of its host.
  public abstract String host();

  /// Its last known state; empty if it has ended or is not known.
  public abstract Optional<ProcessState> state();

  /// Reason for its loss, as a part of a sentence; empty if its end was reported.
  public abstract String loss();
}
