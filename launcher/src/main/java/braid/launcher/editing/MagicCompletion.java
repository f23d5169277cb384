package braid.launcher.editing;

import braid.launcher.editing.Completions.Item;
import braid.launcher.editing.Completions.Kind;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/// Lines that begin with `%`: their names and what may follow them, both from the text of `%help`,
/// so that a magic that is explained is also completed.
final class MagicCompletion {
  private static final Pattern NAME = Pattern.compile("%%?[a-z]+");
  private static final Set<String> WANT_RANKS = Set.of("%%rank", "%%ranks");
  private static final Set<String> WANT_PATHS = Set.of("%jars", "%load");
  private static final int MOST_PATHS = 200;

  private final String help;
  private final int ranks;

  MagicCompletion(String help, int ranks) {
    this.help = help;
    this.ranks = ranks;
  }

  /// @param line the line up to the cursor
  Completions complete(String line, int cursor) {
    int space = line.indexOf(' ');
    if (space < 0) {
      var names =
          NAME.matcher(help).results().map(found -> found.group()).distinct().sorted().toList();
      return of(names, Kind.MAGIC, line, cursor);
    }
    var name = line.substring(0, space);
    var written = line.substring(Math.max(line.lastIndexOf(' '), line.lastIndexOf(',')) + 1);
    if (WANT_RANKS.contains(name)) {
      var numbers = IntStream.range(0, ranks).mapToObj(Integer::toString).toList();
      return of(numbers, Kind.INSTANCE, written, cursor);
    }
    if (WANT_PATHS.contains(name)) {
      return paths(line.substring(line.lastIndexOf(' ') + 1), cursor);
    }
    return of(choices(name), Kind.INSTANCE, written, cursor);
  }

  /// What a magic does, as `%help` says it.
  Optional<String> explain(String name) {
    var lines = help.lines().map(String::strip).toList();
    return lines.stream()
        .filter(line -> line.startsWith(name + " "))
        .findFirst()
        .or(
            () ->
                lines.stream()
                    .filter(line -> NAME.matcher(line).results().anyMatch(is(name)))
                    .findFirst());
  }

  private static Predicate<MatchResult> is(String name) {
    return found -> found.group().equals(name);
  }

  /// `%output all|first` says itself what may follow.
  private List<String> choices(String name) {
    return explain(name)
        .filter(line -> line.startsWith(name + " "))
        .map(line -> line.substring(name.length()).strip().split("\\s+", 2)[0])
        .filter(argument -> argument.contains("|"))
        .map(argument -> Arrays.asList(argument.split("\\|", -1)))
        .orElse(List.of());
  }

  private static Completions paths(String written, int cursor) {
    int slash = written.lastIndexOf('/') + 1;
    var found = new ArrayList<String>();
    try (var entries = Files.newDirectoryStream(Path.of(written.substring(0, slash)))) {
      for (var entry : entries) {
        var name = String.valueOf(entry.getFileName());
        if (!name.startsWith(".") && name.startsWith(written.substring(slash))) {
          found.add(written.substring(0, slash) + name + (Files.isDirectory(entry) ? "/" : ""));
        }
        if (found.size() == MOST_PATHS) {
          break;
        }
      }
    } catch (IOException | DirectoryIteratorException | InvalidPathException e) {
      return Completions.none(cursor); // there is no such folder, so nothing in it to be named
    }
    found.sort(null);
    return of(found, Kind.PATH, written, cursor);
  }

  private static Completions of(List<String> all, Kind kind, String written, int cursor) {
    var items =
        all.stream().filter(text -> text.startsWith(written)).map(text -> new Item(text, kind));
    return new Completions(items.toList(), cursor - written.length(), cursor);
  }
}
