package braid.launcher.session;

import java.nio.file.Path;
import java.util.Optional;

/// What a session is started with. `backend` is `auto`, `host` or `cuda`; `link` is the host
/// backend's paced link as the user wrote it, for example `2GB/s,20us`; `home` is where `runs/` is
/// kept.
public record SessionOptions(int ranks, String backend, Optional<String> link, Path home) {}
