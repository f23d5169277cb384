package braid.launcher;

import java.io.File;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/// Class path of ranks, which cells are compiled against: the front's without the jar that only its
/// sockets need, so that completion does not list thousands of its classes.
public final class RankClassPath {
  private static final String FRONT_ONLY = "bcprov-";

  private RankClassPath() {}

  public static List<Path> entries() {
    return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator, -1))
        .filter(entry -> !new File(entry).getName().startsWith(FRONT_ONLY))
        .map(Path::of)
        .toList();
  }

  /// Returns the entries as an option has them.
  public static String text() {
    return String.join(File.pathSeparator, entries().stream().map(Path::toString).toList());
  }
}
