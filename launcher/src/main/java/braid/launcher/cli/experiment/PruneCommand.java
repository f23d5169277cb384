package braid.launcher.cli.experiment;

import braid.launcher.Counted;
import braid.launcher.experiment.Experiments;
import braid.launcher.experiment.Experiments.Found;
import braid.launcher.experiment.Manifest.State;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid runs prune`: deletes old runs with their measurements.
@Command(
    name = "prune",
    description = "Deletes old runs with their measurements; never one that is running.",
    mixinStandardHelpOptions = true,
    exitCodeList = {" 0:fine", " 2:bad options, or a run could not be deleted"},
    footer = {"  braid runs prune --keep 20", "  braid runs prune --older-than 30 --dry-run"})
final class PruneCommand implements Callable<Integer> {
  @Option(names = "--keep", paramLabel = "N", description = "Keeps the N newest runs.")
  private @Nullable Integer keep;

  @Option(
      names = "--older-than",
      paramLabel = "DAYS",
      description = "Deletes only runs that started more than DAYS days ago.")
  private @Nullable Integer olderThan;

  @Option(names = "--dry-run", description = "Prints what would be deleted, and deletes nothing.")
  private boolean dryRun;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    var experiments = new Experiments(Path.of("").toAbsolutePath().resolve("runs"));
    var kept = new ArrayList<>(experiments.list());
    var old = old(kept);
    kept.removeAll(old);
    long bytes = 0;
    var out = spec.commandLine().getOut();
    for (var run : old) {
      bytes += dryRun ? run.bytes(kept) : run.delete(kept);
      out.println("%s  %s".formatted(dryRun ? "would delete" : "deleted", run.manifest().id()));
    }
    out.println(
        String.format(
            Locale.ROOT,
            "%s in %s: %s, %.1f MB",
            dryRun ? "would delete" : "deleted",
            experiments.runs(),
            Counted.of(old.size(), "run"),
            bytes / 1e6));
    out.flush();
    return 0;
  }

  private List<Found> old(List<Found> all) {
    if (keep == null && olderThan == null) {
      throw new BraidException(
          "prune needs --keep or --older-than but has neither; try braid runs prune --keep 20");
    }
    check("--keep", keep);
    check("--older-than", olderThan);
    var before = olderThan == null ? Instant.MAX : Instant.now().minus(Duration.ofDays(olderThan));
    var old =
        all.stream()
            .limit(Math.max(0, all.size() - (keep == null ? 0 : keep)))
            .filter(run -> run.manifest().started().isBefore(before))
            .filter(run -> run.manifest().state() != State.RUNNING)
            .toList();
    // A run inside another stays, and so does the other.
    return old.stream()
        .filter(
            run ->
                all.stream()
                    .filter(each -> !old.contains(each))
                    .noneMatch(kept -> kept.directory().startsWith(run.directory())))
        .toList();
  }

  private static void check(String option, @Nullable Integer value) {
    if (value != null && value < 0) {
      throw new BraidException(
          "%s must be 0 or more but was %d; try %s 20".formatted(option, value, option));
    }
  }
}
