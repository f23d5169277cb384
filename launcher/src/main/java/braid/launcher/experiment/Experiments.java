package braid.launcher.experiment;

import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.Stream;

/// The runs that are kept in a folder, and how people name one: by its id, by a beginning of it
/// that only one has, by the six characters at its end, by a path, or as `latest` or `previous`.
public record Experiments(Path runs) {
  /// The name of the run that started last.
  public static final String LATEST = "latest";

  /// The name of the run before that.
  public static final String PREVIOUS = "previous";

  /// A run's manifest and the folder it lies in.
  public record Found(Manifest manifest, Path directory) {}

  /// The oldest first.
  public List<Found> list() {
    return folders().filter(Experiments::isRun).map(Experiments::read).toList();
  }

  private Stream<Path> folders() {
    if (!Files.isDirectory(runs)) {
      return Stream.empty();
    }
    try (var entries = Files.list(runs)) {
      return entries.sorted().toList().stream();
    } catch (IOException e) {
      throw new BraidException(runs + " cannot be read: " + e, e);
    }
  }

  private static boolean isRun(Path folder) {
    return Files.isRegularFile(folder.resolve(Manifest.FILE));
  }

  private static Found read(Path folder) {
    return new Found(Manifest.read(folder.resolve(Manifest.FILE)), folder);
  }

  /// @throws BraidException where there is none of that name, or more than one
  public Found find(String name) {
    return read(
        folder(name, Experiments::isRun)
            .orElseThrow(
                () ->
                    new BraidException(
                        "a run must be one of those in %s but \"%s\" is none; braid runs lists them"
                            .formatted(runs, name))));
  }

  /// The run that something measured belongs to.
  public Optional<Found> madeBy(String dataId) {
    return list().stream().filter(run -> run.manifest().data().contains(dataId)).findFirst();
  }

  /// The folder that is meant; empty where there is none.
  ///
  /// @param wanted which folders count
  public Optional<Path> folder(String name, Predicate<Path> wanted) {
    if (name.isBlank()) {
      return Optional.empty();
    }
    if (name.equals(LATEST)) {
      return Optional.of(fromTheEnd(name, 1));
    }
    if (name.equals(PREVIOUS)) {
      return Optional.of(fromTheEnd(name, 2));
    }
    var path = directory(Path.of(name).toAbsolutePath().normalize());
    if (name.contains("/") || name.equals(".")) {
      return Optional.of(path).filter(wanted);
    }
    var all = folders().filter(wanted).toList();
    var meant = all.stream().filter(folder -> isMeant(name, folder)).toList();
    if (meant.size() > 1) {
      throw new BraidException(
          "a run must be named so that one is meant but \"%s\" is %s; write more of its id"
              .formatted(
                  name,
                  String.join(", ", meant.stream().map(f -> f.getFileName().toString()).toList())));
    }
    return meant.stream().findFirst().or(() -> Optional.of(path).filter(wanted));
  }

  private Path fromTheEnd(String name, int place) {
    var all = folders().filter(Experiments::isRun).toList();
    if (all.size() < place) {
      throw new BraidException(
          "%s must be a run in %s but that has %d; braid run makes one"
              .formatted(name, runs, all.size()));
    }
    return all.get(all.size() - place);
  }

  private static Path directory(Path path) {
    var parent = path.getParent();
    return Files.isRegularFile(path) && parent != null ? parent : path;
  }

  private static boolean isMeant(String name, Path folder) {
    var id = folder.getFileName().toString();
    return id.startsWith(name) || id.endsWith("-" + name);
  }
}
