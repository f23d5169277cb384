package braid.launcher.experiment;

import braid.evidence.Runs;
import braid.model.BraidException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.Stream;

/// Runs in a folder. Users name one by its id, a unique beginning of it, its last six characters, a
/// path, `latest` or `previous`.
public record Experiments(Path runs) {
  /// The name of the run that started last.
  public static final String LATEST = "latest";

  /// The name of the run before that.
  public static final String PREVIOUS = "previous";

  /// A run's manifest and folder.
  public record Found(Manifest manifest, Path directory) {
    /// Returns the folder of a measurement. Earlier versions saved measurements beside the run.
    public Path data(String id) {
      var inside = directory.resolve(id);
      return Files.isDirectory(inside) ? inside : directory.resolveSibling(id);
    }

    /// Returns the bytes that [#delete] frees.
    public long bytes(Collection<Found> kept) throws IOException {
      long bytes = 0;
      for (var file : files(kept)) {
        bytes += Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) ? Files.size(file) : 0;
      }
      return bytes;
    }

    /// Deletes the run and its measurements, the manifest last, so that an interrupted deletion
    /// leaves a run. Returns the bytes that were freed.
    ///
    /// @param kept runs whose measurements stay, whatever this run's manifest names
    public long delete(Collection<Found> kept) throws IOException {
      long bytes = bytes(kept);
      var files = new ArrayList<>(files(kept));
      var last = List.of(directory.resolve(Manifest.FILE), directory);
      files.removeAll(last);
      for (var file : files) {
        Files.deleteIfExists(file);
      }
      for (var file : last) {
        Files.deleteIfExists(file);
      }
      return bytes;
    }

    /// Returns files and folders, each before its parent.
    private List<Path> files(Collection<Found> kept) throws IOException {
      var files = new ArrayList<Path>();
      // A manifest that was changed by hand must not name a folder elsewhere, nor another run.
      for (var id : manifest.data()) {
        var beside = directory.resolveSibling(id);
        if (Runs.isId(id)
            && !isRun(beside)
            && kept.stream().noneMatch(run -> run.manifest.data().contains(id))) {
          addAll(beside, files);
        }
      }
      addAll(directory, files);
      return files;
    }

    private static void addAll(Path folder, List<Path> files) throws IOException {
      if (Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
        try (var below = Files.walk(folder)) {
          below.sorted(Comparator.reverseOrder()).forEach(files::add);
        } catch (UncheckedIOException e) {
          throw e.getCause();
        }
      }
    }
  }

  /// Returns all runs, oldest first. Links are skipped: what they lead to belongs elsewhere, or is
  /// in the list already.
  public List<Found> list() {
    return folders().filter(Experiments::isRun).map(Experiments::read).toList();
  }

  /// Returns folders of runs and measurements by name, which is by time.
  private Stream<Path> folders() {
    return children(runs)
        .flatMap(
            each -> isRun(each) ? Stream.concat(Stream.of(each), children(each)) : Stream.of(each))
        .sorted(Comparator.comparing(each -> String.valueOf(each.getFileName())));
  }

  private static Stream<Path> children(Path folder) {
    if (!Files.isDirectory(folder)) {
      return Stream.empty();
    }
    try (var entries = Files.list(folder)) {
      return entries.filter(entry -> !Files.isSymbolicLink(entry)).toList().stream();
    } catch (IOException e) {
      throw new BraidException(folder + " cannot be read: " + e, e);
    }
  }

  private static boolean isRun(Path folder) {
    return Files.isRegularFile(folder.resolve(Manifest.FILE));
  }

  private static Found read(Path folder) {
    return new Found(Manifest.read(folder.resolve(Manifest.FILE)), folder);
  }

  /// @throws BraidException if no run or more than one has that name
  public Found find(String name) {
    return read(
        folder(name, Experiments::isRun)
            .orElseThrow(
                () ->
                    new BraidException(
                        "a run must be one of those in %s but \"%s\" is none; braid runs lists them"
                            .formatted(runs, name))));
  }

  /// Returns the run with a study that started last, or the one before that. Further starts of a
  /// run are no runs of their own here.
  ///
  /// @param name [#LATEST] or [#PREVIOUS]
  /// @param notebook name of its notebook; empty for any
  public Found withStudy(String name, Optional<String> notebook) {
    return fromTheEnd(
        name,
        "a run with a study" + notebook.map(" of "::concat).orElse(""),
        list().stream()
            .filter(run -> run.manifest().hasStudy() && !run.manifest().isFurtherStart())
            .filter(run -> notebook.map(run.manifest()::isOf).orElse(true))
            .toList());
  }

  /// Returns all starts of a run that ended well, the first one first, and itself however it ended.
  public List<Found> starts(Found run) {
    var id = run.manifest().id();
    var others =
        list().stream()
            .filter(each -> each.manifest().firstStart().equals(run.manifest().firstStart()))
            .filter(each -> !each.manifest().id().equals(id))
            .filter(each -> each.manifest().state() == Manifest.State.COMPLETED)
            .filter(each -> each.manifest().hasStudy());
    return Stream.concat(Stream.of(run), others)
        .sorted(Comparator.comparing(each -> each.manifest().id()))
        .toList();
  }

  /// Returns the newest completed runs with a study that are in one state ([Differences]), oldest
  /// first: the newest of them, and those before that differ from it in nothing but time and load.
  ///
  /// @param most largest number of runs
  /// @param notebook name of their notebook; empty for any
  /// @param before id of a run after them; empty for none
  public List<Found> newest(int most, Optional<String> notebook, Optional<String> before) {
    var all =
        completed(notebook)
            .filter(run -> before.map(id -> run.manifest().id().compareTo(id) < 0).orElse(true))
            .toList();
    if (all.isEmpty()) {
      throw new BraidException(
          "a rolling baseline must be a completed run with a study%s in %s but there is none%s; braid run makes one"
              .formatted(
                  notebook.map(" of "::concat).orElse(""),
                  runs,
                  before.map(" before "::concat).orElse("")));
    }
    var newest = all.getLast().manifest();
    return all.reversed().stream()
        .filter(run -> Differences.areOfOneState(newest, run.manifest()))
        .limit(most)
        .toList()
        .reversed();
  }

  /// Returns true if a run of a notebook has completed with a study.
  public boolean hasCompleted(String notebook) {
    return completed(Optional.of(notebook)).findAny().isPresent();
  }

  private Stream<Found> completed(Optional<String> notebook) {
    return list().stream()
        .filter(run -> run.manifest().hasStudy() && !run.manifest().isFurtherStart())
        .filter(run -> run.manifest().state() == Manifest.State.COMPLETED)
        .filter(run -> notebook.map(run.manifest()::isOf).orElse(true));
  }

  /// Returns true for a name that means another run once there is a newer one.
  public static boolean isByTime(String name) {
    return name.equals(LATEST) || name.equals(PREVIOUS);
  }

  /// Returns the run that a measurement belongs to.
  public Optional<Found> madeBy(String dataId) {
    return list().stream().filter(run -> run.manifest().data().contains(dataId)).findFirst();
  }

  /// Returns the folder with that name; empty if there is none.
  ///
  /// @param wanted accepts a folder
  public Optional<Path> folder(String name, Predicate<Path> wanted) {
    if (name.isBlank()) {
      return Optional.empty();
    }
    if (isByTime(name)) {
      return Optional.of(fromTheEnd(name, "a run", folders().filter(Experiments::isRun).toList()));
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
    return meant.stream()
        .findFirst()
        .or(() -> Stream.of(runs.resolve(name), path).filter(wanted).findFirst());
  }

  private <T> T fromTheEnd(String name, String noun, List<T> all) {
    int place = name.equals(LATEST) ? 1 : 2;
    if (all.size() == 1 && place == 2) {
      throw new BraidException(
          "previous must be %s before the latest one in %s but that has one; run it again, or name two runs"
              .formatted(noun, runs));
    }
    if (all.size() < place) {
      throw new BraidException(
          "%s must be %s in %s but that has %d; braid run makes one"
              .formatted(name, noun, runs, all.size()));
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
