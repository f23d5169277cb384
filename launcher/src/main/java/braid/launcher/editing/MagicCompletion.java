package braid.launcher.editing;

import braid.launcher.cell.MagicName;
import braid.launcher.editing.Completions.Item;
import braid.launcher.editing.Completions.ItemKind;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;

/// Completion of magic lines: names and arguments.
final class MagicCompletion {
  private static final Set<String> WANT_RANKS = Set.of("%%rank", "%%ranks");
  private static final Set<String> WANT_PATHS = Set.of("%jars", "%load");
  private static final int MOST_PATHS = 200;

  private final int ranks;

  MagicCompletion(int ranks) {
    this.ranks = ranks;
  }

  /// @param line the line up to the cursor
  Completions complete(String line, int cursor) {
    int space = line.indexOf(' ');
    if (space < 0) {
      return of(MagicName.spellings(), ItemKind.MAGIC, line, cursor);
    }
    var name = line.substring(0, space);
    var written = line.substring(Math.max(line.lastIndexOf(' '), line.lastIndexOf(',')) + 1);
    if (WANT_RANKS.contains(name)) {
      var numbers = IntStream.range(0, ranks).mapToObj(Integer::toString).toList();
      return of(numbers, ItemKind.INSTANCE, written, cursor);
    }
    if (WANT_PATHS.contains(name)) {
      return paths(line.substring(line.lastIndexOf(' ') + 1), cursor);
    }
    return of(choices(name), ItemKind.INSTANCE, written, cursor);
  }

  /// Returns the choices of a magic with alternatives, such as `%output`.
  private static List<String> choices(String name) {
    var arguments = MagicName.of(name).map(MagicName::arguments).orElse("");
    return arguments.contains("|") ? Arrays.asList(arguments.split("\\|", -1)) : List.of();
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
      return Completions.none(cursor); // no such folder
    }
    found.sort(null);
    return of(found, ItemKind.PATH, written, cursor);
  }

  private static Completions of(List<String> all, ItemKind kind, String written, int cursor) {
    var items =
        all.stream().filter(text -> text.startsWith(written)).map(text -> new Item(text, kind));
    return new Completions(items.toList(), cursor - written.length(), cursor);
  }
}
