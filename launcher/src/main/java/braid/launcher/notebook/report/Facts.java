package braid.launcher.notebook.report;

import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// What a reader of a report must know of the run besides its notebooks.
///
/// @param command as it was typed
/// @param environment name to value, in the order they are to be shown
public record Facts(Instant start, String command, SequencedMap<String, String> environment) {
  public Facts {
    environment = new LinkedHashMap<>(environment);
  }
}
