package braid.launcher.notebook.report;

import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// Start, command and environment of a run, for its report.
///
/// @param command as typed
/// @param environment name to value, in the order of the report
public record Facts(Instant start, String command, SequencedMap<String, String> environment) {
  public Facts {
    environment = new LinkedHashMap<>(environment);
  }
}
