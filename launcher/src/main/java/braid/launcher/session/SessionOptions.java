package braid.launcher.session;

import braid.launcher.machine.BackendChoice;
import braid.launcher.output.OutputLimit;
import java.nio.file.Path;
import java.util.Optional;

/// What a session is started with. `link` is the host backend's paced link as the user wrote it,
/// for example `2GB/s,20us`; `home` is where `runs/` is kept; `outputLimit` is how much of what a
/// cell puts out is shown.
public record SessionOptions(
    int ranks, BackendChoice backend, Optional<String> link, Path home, OutputLimit outputLimit) {
  /// With the default output limit.
  public SessionOptions(int ranks, BackendChoice backend, Optional<String> link, Path home) {
    this(ranks, backend, link, home, OutputLimit.DEFAULT);
  }

  /// On that backend, because the code says so: `host` or `cuda`.
  public SessionOptions(int ranks, String backend, Optional<String> link, Path home) {
    this(ranks, new BackendChoice(backend, "as the code says"), link, home);
  }
}
