package braid.launcher.session;

import braid.launcher.machine.BackendChoice;
import braid.launcher.output.OutputLimit;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.Optional;

/// Options of a session. `link` is the host backend's simulated link as the user wrote it, for
/// example `2GB/s,20us`; `home` is the directory of `runs/`; `outputLimit` is the limit of a cell's
/// output.
public record SessionOptions(
    int ranks, BackendChoice backend, Optional<String> link, Path home, OutputLimit outputLimit) {
  /// Uses the default output limit.
  public SessionOptions(int ranks, BackendChoice backend, Optional<String> link, Path home) {
    this(ranks, backend, link, home, OutputLimit.DEFAULT);
  }

  /// Uses the backend `host` or `cuda`, set in code.
  public SessionOptions(int ranks, BackendKind backend, Optional<String> link, Path home) {
    this(ranks, new BackendChoice(backend, "set in code"), link, home);
  }
}
