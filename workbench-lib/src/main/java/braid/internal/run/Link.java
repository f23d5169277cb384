package braid.internal.run;

import braid.internal.backend.Stream;
import java.util.List;

/// A pipeline or a collective of a sequence: work whose ranks are at the same step.
public interface Link extends Launchable {
  /// Returns all streams, communication first.
  List<Stream> streams();

  /// Restarts the step count of a new epoch.
  void beginEpoch();

  /// Notes a failure, after which ranks may be at different steps.
  void spoil(Throwable cause);

  /// Resets the streams after a failure.
  void quiesce();

  /// Returns whether a library may wait for any other rank.
  boolean waitsInLibrary();
}
