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
import java.util.List;
import java.util.Optional;

/// One side of a comparison: a run with all its studies, those of its starts pooled, or a single
/// study.
///
/// @param manifest manifest of the run; empty for a study without a run
record Source(String id, Optional<Manifest> manifest, List<Study<?>> studies) {
  private static final String STUDY = "study.json";

  /// @param notebook notebook of the runs that `latest` and `previous` mean; empty for any
  /// @throws BraidException if nothing has that name, or it has no study
  static Source named(String name, Experiments experiments, Optional<String> notebook) {
    if (Experiments.isByTime(name)) {
      return run(experiments.withStudy(name, notebook), experiments);
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
        ? run(experiments.find(folder + "/"), new Experiments(parent(folder)))
        : study(folder);
  }

  private static boolean hasFile(Path folder, String name) {
    return Files.isRegularFile(folder.resolve(name));
  }

  /// Returns a run with the studies of all its starts.
  private static Source run(Found run, Experiments experiments) {
    var starts = experiments.starts(run).stream().map(Source::start).toList();
    return starts.size() == 1 ? starts.getFirst() : pooled(starts);
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
    return new Source(run.manifest().id(), Optional.of(run.manifest()), List.copyOf(studies));
  }

  /// Pools the k-th studies of several starts.
  static Source pooled(List<Source> starts) {
    int studies = starts.stream().mapToInt(start -> start.studies().size()).min().orElseThrow();
    var pooled = new ArrayList<Study<?>>();
    for (int study = 0; study < studies; study++) {
      int index = study;
      pooled.add(
          Comparison.pooled(starts.stream().map(start -> start.studies().get(index)).toList()));
    }
    return new Source(
        String.join(", ", starts.stream().map(Source::id).toList()),
        starts.getFirst().manifest(),
        pooled);
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
    return new Source(id, madeBy, List.of(study));
  }
}
