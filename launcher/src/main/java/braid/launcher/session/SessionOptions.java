package braid.launcher.session;

import braid.launcher.machine.BackendChoice;
import java.nio.file.Path;
import java.util.Optional;

/// What a session is started with. `link` is the host backend's paced link as the user wrote it,
/// for example `2GB/s,20us`; `home` is where `runs/` is kept.
public record SessionOptions(int ranks, BackendChoice backend, Optional<String> link, Path home) {
  /// On that backend, because the code says so: `host` or `cuda`.
  public SessionOptions(int ranks, String backend, Optional<String> link, Path home) {
    this(ranks, new BackendChoice(backend, "as the code says"), link, home);
  }
}
