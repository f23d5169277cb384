package braid.natives.load;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/// One copy of a library. `files` are in load order; the first is the library itself. A copy
/// without a version is the last choice.
record Candidate(SearchFolder.Source source, List<Path> files, Optional<Version> version) {
  Path file() {
    return files.getFirst();
  }

  boolean newerThan(Candidate other) {
    return version.isPresent()
        && (other.version.isEmpty() || version.get().newerThan(other.version.get()));
  }

  String text() {
    return "%s (%s, in %s)"
        .formatted(file(), version.map(Version::text).orElse("version unknown"), source.words);
  }
}
