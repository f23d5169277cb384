package braid.launcher.cli.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// What a run leaves under `runs/`: what is there after it and was not before.
public record SavedData(Path runs, Set<Path> before) {
  public static SavedData before(Path home) throws IOException {
    var runs = home.resolve("runs");
    return new SavedData(runs, new HashSet<>(entries(runs)));
  }

  public List<Path> since() throws IOException {
    var entries = new ArrayList<>(entries(runs));
    entries.removeAll(before);
    entries.sort(null);
    return entries;
  }

  /// What was not finished: it is no data yet.
  private static boolean isHidden(Path entry) {
    return entry.getFileName().toString().startsWith(".");
  }

  private static List<Path> entries(Path directory) throws IOException {
    if (!Files.isDirectory(directory)) {
      return List.of();
    }
    try (var entries = Files.list(directory)) {
      return entries.filter(entry -> !isHidden(entry)).toList();
    }
  }
}
