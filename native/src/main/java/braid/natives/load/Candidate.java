package braid.natives.load;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/// One copy of a library. `files` are in the order in which they must be loaded; the first is the
/// one that is named. Without a version it is only taken where nothing else is left.
record Candidate(SearchFolder.Kind kind, List<Path> files, Optional<Version> version) {
  Path file() {
    return files.getFirst();
  }

  boolean newerThan(Candidate other) {
    return version.isPresent()
        && (other.version.isEmpty() || version.get().newerThan(other.version.get()));
  }

  String text() {
    return "%s (%s, in %s)"
        .formatted(file(), version.map(Version::text).orElse("version unknown"), kind.words);
  }
}
