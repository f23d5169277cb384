package braid;

import braid.evidence.Decision;
import braid.evidence.Decisions;
import braid.evidence.Study;
import braid.internal.context.RankContext;
import braid.internal.report.value.Caveats;
import braid.model.Auto;
import braid.model.BackendKind;
import braid.model.MemoryKind;
import braid.model.Problem;
import braid.model.Tuning;
import braid.natives.BlasBuild;
import braid.natives.cuda.GpuError;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import braid.natives.nvml.Nvml;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Clock;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// Tunings of [Auto] for pipelines of a group: the kept decision for the problem on this machine,
/// or a new one. Rank 0 reads and writes the decisions, and all ranks have the same.
///
/// @param kind kind of the pipeline's symmetric memory
/// @param decisions kept decisions; rank 0's count
record AutoTuning(ProcessGroup group, Problem problem, MemoryKind kind, Decisions decisions) {
  private static final int ROOT = 0;
  private static final String POM = "/META-INF/maven/dev.braid/braid-workbench-lib/pom.properties";

  /// @param kind kind of the pipeline's symmetric memory; null for the default
  static AutoTuning of(ProcessGroup group, Problem problem, @Nullable MemoryKind kind) {
    var context = group.context();
    return new AutoTuning(
        group,
        problem,
        context.backend().resolve(kind == null ? context.env().memory() : kind),
        Decisions.kept());
  }

  /// Returns the tuning to build with.
  Tuning tuning(Auto auto) {
    if (group.size() == 1) {
      return without(
          Tuning.unfused(problem),
          Caveats.oneRank(Map.of("backend", backend().toString()), 1).orElseThrow());
    }
    if (group.context().backend().ranksPerDevice() != 1) {
      return without(Feasibility.byDefault(problem, group), Caveats.SHARED);
    }
    var kept = group.broadcast(isRoot() ? kept() : "", ROOT);
    return kept.isEmpty() ? decide(auto) : Decision.fromJson(kept).tuning();
  }

  private Tuning without(Tuning taken, String reason) {
    note("auto takes `%s`, without measuring: %s".formatted(taken, reason));
    return taken;
  }

  /// Returns the kept decision as JSON; empty if there is none, or if it is stale.
  private String kept() {
    var decision = decisions.find(setting());
    var stale = decision.flatMap(each -> each.stale(versions()));
    stale.ifPresent(
        changes ->
            note(
                "the decision for %s is stale, so auto decides again: %s"
                    .formatted(problem, changes)));
    return stale.isEmpty() ? decision.map(Decision::toJson).orElse("") : "";
  }

  private Tuning decide(Auto auto) {
    var tuner = new TunerRun(group, kind);
    tuner.problem = problem;
    tuner.budget = auto.budget();
    tuner.grid.whole();
    tuner.searches = true;
    tuner.decisions = decisions;
    return tuning(tuner.study(Tuning.class));
  }

  /// Returns the tuning that a study decides for; unfused if its times are impossible, which
  /// decides nothing.
  Tuning tuning(Study<? extends Tuning> study) {
    if (!study.faults().isEmpty()) {
      var unfused = Tuning.unfused(problem);
      note("auto takes `%s`, and keeps nothing: %s".formatted(unfused, study.headline()));
      return unfused;
    }
    var decision = decision(study);
    note("auto decides: " + decision.headline());
    return decision.tuning();
  }

  /// Makes a decision of a study. It is kept if it is certain.
  ///
  /// @throws BraidException if its times are impossible
  Decision decision(Study<? extends Tuning> study) {
    // Made on every rank, so that all refuse impossible times. Rank 0's machine and time count.
    var mine = new Decision(setting(), versions(), Clock.systemUTC().instant(), study);
    var decision = Decision.fromJson(group.broadcast(isRoot() ? mine.toJson() : "", ROOT));
    if (!decision.isCertain()) {
      note("the decision for %s is not kept, since it is undecided".formatted(problem));
    } else if (isRoot()) {
      decisions.keep(decision);
    }
    return decision;
  }

  private boolean isRoot() {
    return group.rank() == ROOT;
  }

  private void note(String line) {
    if (isRoot()) {
      RankContext.current().outbox().note(line);
    }
  }

  private BackendKind backend() {
    return group.context().backend().kind();
  }

  /// Problem and machine that a decision is valid for.
  SequencedMap<String, String> setting() {
    var backend = group.context().backend();
    var env = group.context().env();
    var setting = new LinkedHashMap<String, String>();
    setting.put(Decision.PROBLEM, problem.toString());
    setting.put("ranks", Integer.toString(group.size()));
    setting.put("ranks per host", Integer.toString(env.local().size()));
    setting.put("backend", backend.kind().toString());
    setting.put(Caveats.DEVICE, backend.deviceName());
    setting.put("link", backend.link());
    setting.put("memory", kind.toString());
    return setting;
  }

  private static String braid() {
    var properties = new Properties();
    try (var file = AutoTuning.class.getResourceAsStream(POM)) {
      if (file != null) {
        properties.load(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return properties.getProperty("version", "development");
  }

  SequencedMap<String, String> versions() {
    return versions(group);
  }

  /// Versions of everything that may change times.
  static SequencedMap<String, String> versions(ProcessGroup group) {
    var versions = new LinkedHashMap<String, String>();
    versions.put("braid", braid());
    versions.put("java", Runtime.version().toString());
    if (group.context().backend().kind() == BackendKind.HOST) {
      versions.put("openblas", BlasBuild.load().config().strip());
    } else {
      try (var nvml = Nvml.open()) {
        versions.put("driver", nvml.driverVersion());
      } catch (GpuError e) {
        versions.put("driver", "unknown");
      }
      for (var library : Library.values()) {
        Libraries.foreseen(library)
            .ifPresent(found -> versions.put(library.name().toLowerCase(Locale.ROOT), found));
      }
    }
    return versions;
  }
}
