package braid.natives.load;

import braid.natives.load.Libraries.Library;
import braid.natives.load.SearchFolder.Kind;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.stream.Collectors;

/// All copies of a library, and which is to be taken. Touches nothing but the file system.
final class Search {
  private final List<Candidate> left;

  private Search(List<Candidate> candidates) {
    this.left = new ArrayList<>(candidates);
  }

  static Search in(Places places, Library which, List<Candidate> others) {
    var candidates = new ArrayList<Candidate>();
    var seen = new HashSet<Path>();
    for (SearchFolder place : places.all()) {
      var files = which.files().stream().map(place.folder()::resolve).toList();
      if (files.stream().allMatch(Files::isRegularFile)
          && seen.add(Places.real(files.getFirst()))) {
        candidates.add(new Candidate(place.kind(), files, Named.version(which, files.getFirst())));
      }
    }
    candidates.addAll(others);
    return new Search(candidates);
  }

  boolean isEmpty() {
    return left.isEmpty();
  }

  /// What is left once some were taken: the ones that were passed over.
  List<String> rest() {
    return left.stream().map(Candidate::text).toList();
  }

  /// Takes the best that is left. The newest wins, of equals the first.
  Candidate take() {
    var best = left.getFirst();
    for (Candidate other : left) {
      if (other.newerThan(best)) {
        best = other;
      }
    }
    left.remove(best);
    return best;
  }

  /// Why this one, said after it was taken.
  String why(Candidate taken) {
    if (left.isEmpty()) {
      return "the only one, in " + taken.kind().words;
    }
    var newest = left.stream().allMatch(other -> taken.newerThan(other));
    return "%s of %d, in %s"
        .formatted(
            newest ? "the newest" : "the first of the newest", left.size() + 1, taken.kind().words);
  }

  /// Where was looked, in the words of a message.
  static String where() {
    return Arrays.stream(Kind.values()).map(kind -> kind.words).collect(Collectors.joining(", "));
  }
}
