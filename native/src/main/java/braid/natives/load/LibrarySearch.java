package braid.natives.load;

import braid.natives.load.Libraries.Library;
import braid.natives.load.SearchFolder.Source;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/// All copies of a library, ordered by preference. Accesses only the file system.
final class LibrarySearch {
  private final List<Candidate> remaining;

  private LibrarySearch(List<Candidate> candidates) {
    this.remaining = new ArrayList<>(candidates);
  }

  static LibrarySearch in(SearchFolders places, Library library, List<Candidate> others) {
    var candidates = new ArrayList<Candidate>();
    var seen = new HashSet<Path>();
    var chosen = places.chosen(library);
    for (SearchFolder place : chosen.map(List::of).orElseGet(places::all)) {
      var files = library.files().stream().map(place.folder()::resolve).toList();
      if (files.stream().allMatch(Files::isRegularFile)
          && seen.add(SearchFolders.real(files.getFirst()))) {
        candidates.add(
            new Candidate(place.source(), files, FileVersion.version(library, files.getFirst())));
      }
    }
    if (chosen.isEmpty()) {
      candidates.addAll(others);
    }
    return new LibrarySearch(candidates);
  }

  boolean isEmpty() {
    return remaining.isEmpty();
  }

  /// Copies that have not been taken.
  List<String> rest() {
    return remaining.stream().map(Candidate::text).toList();
  }

  /// Removes and returns the best remaining copy: the newest; of equal versions the first.
  Candidate take() {
    var best = remaining.getFirst();
    for (Candidate other : remaining) {
      if (other.newerThan(best)) {
        best = other;
      }
    }
    remaining.remove(best);
    return best;
  }

  /// Reason for this copy, after it was taken.
  String why(Candidate taken) {
    if (remaining.isEmpty()) {
      return "the only one, in " + taken.source().words;
    }
    var newest = remaining.stream().allMatch(other -> taken.newerThan(other));
    return "%s of %d, in %s"
        .formatted(
            newest ? "the newest" : "the first of the newest",
            remaining.size() + 1,
            taken.source().words);
  }

  /// Reason why a library is treated as missing; empty if it is not. A value that cannot be read
  /// hides every library that it could name.
  ///
  /// @param names value of `BRAID_WITHOUT`
  static Optional<String> hidden(Library library, String names) {
    if (!library.isOptional()) {
      return Optional.empty();
    }
    try {
      return without(names).contains(library)
          ? Optional.of(
              "%s is hidden by %s=%s".formatted(library.title(), Libraries.WITHOUT, names))
          : Optional.empty();
    } catch (IllegalArgumentException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  /// Libraries that a value of `BRAID_WITHOUT` names, separated by commas.
  ///
  /// @throws IllegalArgumentException with one line if it names another
  static Set<Library> without(String names) {
    var hidden = EnumSet.noneOf(Library.class);
    for (var name : names.split(",", -1)) {
      if (!name.isBlank()) {
        hidden.add(
            Arrays.stream(Library.values())
                .filter(each -> each.isOptional() && each.word().equals(name.strip()))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(unknown(name.strip()))));
      }
    }
    return hidden;
  }

  private static String unknown(String name) {
    return "%s must be names of %s, separated by commas, but contains %s"
        .formatted(
            Libraries.WITHOUT,
            Arrays.stream(Library.values())
                .filter(Library::isOptional)
                .map(Library::word)
                .collect(Collectors.joining(", ")),
            name);
  }

  /// Folders that a value of `BRAID_LIBRARIES` chooses: `nccl=/opt/nccl/lib,cudnn=/opt/cudnn/lib`.
  ///
  /// @throws IllegalArgumentException with one line if it has another form
  static Map<Library, Path> folders(String value) {
    var folders = new EnumMap<Library, Path>(Library.class);
    for (var each : value.split(",", -1)) {
      if (each.isBlank()) {
        continue;
      }
      var parts = each.strip().split("=", 2);
      var library =
          Arrays.stream(Library.values())
              .filter(one -> one.canBeChosen() && one.word().equals(parts[0]))
              .findFirst();
      if (library.isEmpty() || parts.length < 2 || !parts[1].startsWith("/")) {
        throw new IllegalArgumentException(
            "%s must be LIBRARY=/FOLDER, separated by commas, of %s, but contains %s"
                .formatted(
                    Libraries.FOLDERS,
                    Arrays.stream(Library.values())
                        .filter(Library::canBeChosen)
                        .map(Library::word)
                        .collect(Collectors.joining(", ")),
                    each.strip()));
      }
      folders.put(library.get(), Path.of(parts[1]));
    }
    return folders;
  }

  /// Searched places, for messages.
  static String where() {
    return Arrays.stream(Source.values())
        .filter(source -> source != Source.CHOSEN)
        .map(source -> source.words)
        .collect(Collectors.joining(", "));
  }
}
