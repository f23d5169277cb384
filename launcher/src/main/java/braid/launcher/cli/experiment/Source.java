package braid.launcher.cli.experiment;

import braid.evidence.Comparison;
import braid.evidence.Evidence;
import braid.evidence.Runs;
import braid.evidence.Study;
import braid.launcher.experiment.Experiments;
import braid.launcher.experiment.Experiments.Found;
import braid.launcher.experiment.Manifest;
import braid.model.BraidException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;

/// One side of a comparison: a run with all its studies, those of its starts pooled, or a single
/// study.
///
/// @param manifest manifest of the run; empty for a study without a run
/// @param unpooled number of studies that not all of its starts have, or in which they share no
///   configuration
record Source(String id, Optional<Manifest> manifest, List<Study<?>> studies, int unpooled) {
  private static final String STUDY = "study.json";
  private static final String LAST = "last:";
  private static final int MOST_LAST = 100;

  /// Returns true for the name of a rolling baseline, `last:5`.
  static boolean isRolling(String name) {
    return name.startsWith(LAST);
  }

  /// Returns true for a name that means other runs once there is a newer one.
  static boolean isByTime(String name) {
    return Experiments.isByTime(name) || isRolling(name);
  }

  /// Returns the newest runs in one state, pooled.
  ///
  /// @param name `last:5` for five runs or fewer
  /// @param judged the other side, which is not among them
  static Source rolling(
      String name, Experiments experiments, Optional<String> notebook, Optional<Source> judged) {
    checkRolling(name);
    int most = Integer.parseInt(name.substring(LAST.length()));
    var before = judged.flatMap(Source::manifest).map(Manifest::id);
    return pooled(
        experiments.newest(most, notebook, before).stream()
            .flatMap(run -> starts(run, experiments).stream())
            .toList());
  }

  /// @throws BraidException if the name of a rolling baseline has no number of runs
  static void checkRolling(String name) {
    var number = name.substring(LAST.length());
    if (!number.matches("[1-9][0-9]{0,2}") || Integer.parseInt(number) > MOST_LAST) {
      throw new BraidException(
          "a rolling baseline must be last:1 to last:%d but was %s; try last:5"
              .formatted(MOST_LAST, name));
    }
  }

  /// @param folders folders of runs of one program
  static Source ofRuns(List<Path> folders, Experiments experiments) {
    return pooled(
        folders.stream()
            .flatMap(run -> starts(experiments.find(run + "/"), experiments).stream())
            .toList());
  }

  /// Pools the k-th studies of all starts of one program. They are pooled at once: leaving out a
  /// study changes the numbers of those after it.
  ///
  /// @throws BraidException if a start is among them twice
  private static Source pooled(List<Source> runs) {
    if (runs.size() == 1) {
      return runs.getFirst();
    }
    var ids = new HashSet<String>();
    for (var run : runs) {
      if (!ids.add(run.id())) {
        throw new BraidException(
            "runs that are pooled must be different but %s is among them twice; name each once, and of several starts one"
                .formatted(run.id()));
      }
    }
    var studies = new ArrayList<List<Study<?>>>();
    int fewest = runs.stream().mapToInt(run -> run.studies().size()).min().orElseThrow();
    for (int study = 0; study < fewest; study++) {
      int index = study;
      studies.add(runs.stream().<Study<?>>map(run -> run.studies().get(index)).toList());
    }
    var pooled = comparable(studies).stream().<Study<?>>map(Comparison::pooled).toList();
    int most = runs.stream().mapToInt(run -> run.studies().size()).max().orElseThrow();
    return new Source(
        String.join(", ", runs.stream().map(Source::id).toList()),
        runs.getLast().manifest(),
        pooled,
        most - pooled.size());
  }

  /// Returns the groups whose studies share a configuration; if none does, the first, whose error
  /// has the reason.
  static List<List<Study<?>>> comparable(List<List<Study<?>>> groups) {
    var comparable = groups.stream().filter(Comparison::shareConfiguration).toList();
    return comparable.isEmpty() ? groups.subList(0, 1) : comparable;
  }

  /// Returns the name of the run, of several the newest.
  String newest() {
    return Arrays.stream(id.split(", ", -1)).max(Comparator.naturalOrder()).orElse(id);
  }

  /// Returns the errors of numbers that no machine can reach, of any study.
  List<String> faults() {
    return studies.stream().flatMap(study -> study.faults().stream()).toList();
  }

  /// @param name a run or a study, or several with commas between them, which are pooled
  /// @param notebook notebook of the runs that `latest` and `previous` mean; empty for any
  /// @throws BraidException if nothing has that name, or it has no study
  static Source named(String name, Experiments experiments, Optional<String> notebook) {
    return pooled(
        Arrays.stream(name.split(",", -1))
            .flatMap(each -> starts(each.strip(), experiments, notebook).stream())
            .toList());
  }

  /// Returns the starts of a run, or a study.
  private static List<Source> starts(
      String name, Experiments experiments, Optional<String> notebook) {
    if (Experiments.isByTime(name)) {
      return starts(experiments.withStudy(name, notebook), experiments);
    }
    var folder =
        experiments
            .folder(name, f -> hasFile(f, Manifest.FILE) || hasFile(f, STUDY))
            .orElseThrow(
                () ->
                    new BraidException(
                        "what is compared must be a run or a study in %s but \"%s\" is none; braid runs lists them"
                            .formatted(experiments.runs(), name)));
    return hasFile(folder, Manifest.FILE)
        ? starts(experiments.find(folder + "/"), new Experiments(parent(folder)))
        : List.of(study(folder));
  }

  private static boolean hasFile(Path folder, String name) {
    return Files.isRegularFile(folder.resolve(name));
  }

  private static List<Source> starts(Found run, Experiments experiments) {
    return experiments.starts(run).stream().map(Source::start).toList();
  }

  private static Source start(Found run) {
    var studies = new ArrayList<Study<?>>();
    for (var id : run.manifest().data()) {
      var folder = run.data(id);
      if (hasFile(folder, STUDY) && load(folder) instanceof Study<?> study) {
        studies.add(study);
      }
    }
    if (studies.isEmpty()) {
      throw new BraidException(
          "a run must have made a study to be compared but %s made none; Tuner.on(world)...run() in its notebook does"
              .formatted(run.manifest().id()));
    }
    return new Source(run.manifest().id(), Optional.of(run.manifest()), List.copyOf(studies), 0);
  }

  private static Evidence load(Path folder) {
    return Runs.in(parent(folder)).load(String.valueOf(folder.getFileName()));
  }

  private static Path parent(Path folder) {
    return Optional.ofNullable(folder.getParent()).orElse(folder);
  }

  private static Source study(Path folder) {
    if (!(load(folder) instanceof Study<?> study)) {
      throw new BraidException(folder + " must hold a study but does not; name another");
    }
    var id = String.valueOf(folder.getFileName());
    var inside = parent(folder);
    var runs = hasFile(inside, Manifest.FILE) ? parent(inside) : inside;
    var madeBy = new Experiments(runs).madeBy(id).map(Found::manifest);
    return new Source(id, madeBy, List.of(study), 0);
  }
}
