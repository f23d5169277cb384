package braid.launcher.cli.experiment;

import braid.evidence.Comparison;
import braid.evidence.Comparison.Verdict;
import braid.evidence.Study;
import braid.launcher.Counted;
import braid.launcher.ExitCode;
import braid.launcher.OutputFile;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.experiment.Differences;
import braid.launcher.experiment.Experiments;
import braid.launcher.experiment.Manifest;
import braid.model.BraidException;
import braid.natives.WholeFile;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `braid compare`: compares a second run with a first, study by study, and prints the differences
/// of their surroundings.
@Command(
    name = "compare",
    description =
        "Judges whether run B is as fast as run A: each configuration SAME, FAST, SLOW or"
            + " UNDECIDED; MACHINE_DIFFERED if the machine changed too much to tell, NOT_COMPARED"
            + " if ranks shared a GPU. If the reference itself moved, each configuration is judged"
            + " beside its own run's reference.",
    mixinStandardHelpOptions = true,
    exitCodeList = {
      " 0:nothing is slower (undecided is not slower, unless --fail-on-undecided), or ranks shared"
          + " a GPU",
      " 1:the JUnit report could not be written",
      " 2:there is no such run, the two are not of one problem, or a time is impossible",
      " 5:nothing is slower as far as can be told, but the machine differed too much to judge all",
      " 6:something is slower in B, or undecided with --fail-on-undecided; stderr says which",
      " 1, 3, 4, 130, 138, 143:with --interleave, as of run",
    },
    footer = {
      "  braid compare previous latest",
      "  braid compare last:5 latest --csv compare.csv",
      "  braid compare 0a1b2c latest --fail-on-undecided --junit compare.xml",
      "  braid compare baseline/runs/20260131T235959000Z-0a1b2c 3d4e5f --threshold 5",
      "  braid compare 0a1b2c 3d4e5f --json | jq .verdict",
      "  braid compare 0a1b2c 3d4e5f --interleave --turns 5",
    })
public final class CompareCommand implements Callable<Integer> {
  private static final double PERCENT = 100;

  @Parameters(
      index = "0",
      paramLabel = "A",
      description =
          "A run or a study: id, path, latest or previous, which mean runs with a study of one"
              + " notebook. Several with commas between them are pooled; so are the runs of last:5,"
              + " the newest before B that differ in nothing that is recorded, at most five.")
  private String first = "";

  @Parameters(index = "1", paramLabel = "B", description = "What is judged against it.")
  private String second = "";

  @Option(
      names = "--notebook",
      paramLabel = "NAME",
      description =
          "Notebook whose runs latest and previous mean. Default: that of the other run, or of the"
              + " latest run with a study.")
  private @Nullable String notebook;

  @Option(
      names = "--threshold",
      paramLabel = "PERCENT",
      description =
          "A smaller difference does not matter, nor does one within the noise. Default: 3.")
  private @Nullable String threshold;

  @Option(
      names = "--interleave",
      description =
          "Repeats A and B in turns, on fresh ranks each time, and compares the rounds of all"
              + " turns: what the machine does meanwhile meets both. Both are repeated by this"
              + " Braid, on this machine and in this environment; they can differ in notebook,"
              + " parameters, ranks, link and memory.")
  private boolean interleave;

  @Option(
      names = "--turns",
      paramLabel = "N",
      description = "Turns of each run with --interleave. Default: 3.")
  private @Nullable Integer turns;

  @Option(
      names = "--absolute",
      description =
          "Judges times even if the reference moved: on a machine of your own, this finds what"
              + " makes the reference slower too.")
  private boolean absolute;

  @Option(
      names = "--fail-on-undecided",
      description = "Exits with 6 also where a configuration is UNDECIDED.")
  private boolean failOnUndecided;

  @Option(
      names = "--junit",
      paramLabel = "FILE",
      description =
          "Writes a JUnit XML report for CI: a suite per study, a test case per configuration.")
  private @Nullable Path junit;

  @Option(
      names = "--csv",
      paramLabel = "FILE",
      description = "Writes a table: a row per study and configuration.")
  private @Nullable Path csv;

  @Option(names = "--json", description = "Prints JSON, for programs.")
  private boolean json;

  @Spec private CommandSpec spec = CommandSpec.create();

  private double share;

  @Override
  public Integer call() throws IOException {
    share = share(threshold);
    var report = junit == null ? null : OutputFile.writable("--junit", junit);
    var experiments = new Experiments(WorkingDirectory.called().resolve("runs"));
    var csvFile = csv == null ? null : OutputFile.writable("--csv", csv);
    var ofNotebook = notebook(experiments);
    if (Source.isRolling(second) || (Source.isRolling(first) && interleave)) {
      throw new BraidException(
          "last:5 means several runs, which are a baseline but was %s; name one run there"
              .formatted(Source.isRolling(second) ? "B" : "repeated"));
    }
    var b = Source.named(second, experiments, ofNotebook);
    var a =
        Source.isRolling(first)
            ? Source.rolling(first, experiments, ofNotebook, Optional.of(b))
            : Source.named(first, experiments, ofNotebook);
    if (a.id().equals(b.id()) && !interleave) {
      throw new BraidException(
          "two runs must be compared but %s and %s are both %s; braid run or braid rerun makes another"
              .formatted(first, second, a.id()));
    }
    if (turns != null && !interleave) {
      throw new BraidException("--turns has no effect without --interleave; add it");
    }
    if (interleave) {
      var repeated =
          Turns.repeating(a, b, turns == null ? Turns.DEFAULT : turns, experiments, spec);
      var code = repeated.run();
      if (code != ExitCode.OK) {
        return code.code();
      }
      a = Source.ofRuns(repeated.first(), experiments);
      b = Source.ofRuns(repeated.second(), experiments);
    }
    var faults = Stream.concat(a.faults().stream(), b.faults().stream()).distinct().toList();
    if (!faults.isEmpty()) {
      return impossible(faults, a, b, report).code();
    }
    var comparisons = pair(a, b);
    var differences = differences(a, b);
    var verdict = verdict(comparisons);
    var out = spec.commandLine().getOut();
    if (json) {
      out.println(
          CompareJson.of(
              a.id(), b.id(), verdict, comparisons, notCompared(a, b, comparisons), differences));
    } else {
      print(a, b, comparisons, differences, out);
    }
    out.flush();
    var code = exitCode(comparisons, a, b, differences);
    if (report != null) {
      try {
        CompareJUnit.write(comparisons, failOnUndecided, report);
      } catch (IOException e) {
        code = ExitCode.worst(List.of(code, unwritten("--junit", report, e)));
      }
    }
    if (csvFile != null) {
      try {
        WholeFile.write(csvFile, CompareCsv.of(comparisons));
      } catch (IOException e) {
        code = ExitCode.worst(List.of(code, unwritten("--csv", csvFile, e)));
      }
    }
    return code.code();
  }

  private ExitCode unwritten(String option, Path file, IOException e) {
    say(
        "%s %s could not be written (%s); is its directory still there, and is there room?"
            .formatted(option, file, e.getClass().getSimpleName()));
    return ExitCode.CELL_FAILED;
  }

  /// Reports times that no machine can reach; they are compared with nothing.
  private ExitCode impossible(List<String> faults, Source a, Source b, @Nullable Path report) {
    if (json) {
      var out = spec.commandLine().getOut();
      out.println(CompareJson.impossible(a.id(), b.id(), faults));
      out.flush();
    }
    faults.forEach(this::say);
    if (report != null) {
      try {
        CompareJUnit.writeImpossible(faults, report);
      } catch (IOException e) {
        unwritten("--junit", report, e);
      }
    }
    return ExitCode.USAGE;
  }

  private ExitCode exitCode(
      List<Comparison> comparisons, Source a, Source b, Optional<Differences> differences) {
    long slower = count(comparisons, Verdict.SLOW);
    if (slower > 0) {
      say(slower + (slower == 1 ? " configuration is slower" : " configurations are slower"));
      return ExitCode.SLOWER;
    }
    long undecided = count(comparisons, Verdict.UNDECIDED);
    if (undecided > 0 && failOnUndecided) {
      say(
          undecided
              + (undecided == 1 ? " configuration is" : " configurations are")
              + " undecided, none is slower; measure more rounds, or leave out"
              + " --fail-on-undecided");
      return ExitCode.SLOWER;
    }
    if (comparisons.stream().anyMatch(each -> each.verdict() == Verdict.MACHINE_DIFFERED)) {
      var link = differences.flatMap(each -> each.of("session.link"));
      say(
          link.isPresent()
              ? "the link differed between the runs (%s and %s), so their times cannot be compared; run both with the same --link"
                  .formatted(link.get().first(), link.get().second())
              : "the machine differed between the runs, so some configurations cannot be judged; compare on a quieter machine, or "
                  + (interleave
                      ? "with more --turns"
                      : "in turns: braid compare --interleave %s %s"
                          .formatted(a.newest(), b.newest())));
      return ExitCode.MACHINE_DIFFERED;
    }
    return ExitCode.OK;
  }

  private void say(String line) {
    var err = spec.commandLine().getErr();
    err.println("braid: " + line);
    err.flush();
  }

  private static long count(List<Comparison> comparisons, Verdict verdict) {
    return comparisons.stream().mapToLong(each -> each.count(verdict)).sum();
  }

  /// Returns the share of a threshold in percent.
  ///
  /// @throws BraidException if it is not one
  static double share(@Nullable String threshold) {
    if (threshold == null) {
      return Comparison.DEFAULT_THRESHOLD;
    }
    double percent;
    try {
      percent = Double.parseDouble(threshold);
    } catch (NumberFormatException e) {
      percent = Double.NaN;
    }
    if (!(percent >= 0 && percent < PERCENT)) {
      throw new BraidException(
          "--threshold must be a number of percent, 0 to less than 100, but was %s; try --threshold 3"
              .formatted(threshold));
    }
    return percent / PERCENT;
  }

  /// Returns the notebook whose runs `latest` and `previous` mean: the given one, that of the run
  /// that is named, or that of the latest run with a study.
  private Optional<String> notebook(Experiments experiments) {
    if (notebook != null) {
      return Optional.of(notebook);
    }
    var named = Stream.of(first, second).filter(name -> !Source.isByTime(name)).findFirst();
    return named
        .map(name -> Source.named(name, experiments, Optional.empty()).manifest())
        .orElseGet(
            () ->
                Optional.of(experiments.withStudy(Experiments.LATEST, Optional.empty()).manifest()))
        .map(Manifest::notebook);
  }

  /// Returns true if it runs cells.
  public boolean runsCells() {
    return interleave;
  }

  /// Compares the k-th study of a problem with the k-th of that problem in the other run, if they
  /// share a configuration.
  private List<Comparison> pair(Source a, Source b) {
    if (a.studies().size() == 1 && b.studies().size() == 1) {
      // Throws with the difference.
      return List.of(compared(a.studies().getFirst(), b.studies().getFirst()));
    }
    var left = new ArrayList<>(b.studies());
    var pairs = new ArrayList<List<Study<?>>>();
    for (var study : a.studies()) {
      var counterpart = left.stream().filter(each -> Comparison.alike(study, each)).findFirst();
      if (counterpart.isPresent()) {
        left.remove(counterpart.get());
        pairs.add(List.of(study, counterpart.get()));
      }
    }
    if (pairs.isEmpty()) {
      throw new BraidException(
          "two runs must have a problem in common to be compared but %s tuned %s and %s tuned %s; compare runs with the same sizes"
              .formatted(a.id(), settings(a), b.id(), settings(b)));
    }
    return Source.comparable(pairs).stream()
        .map(pair -> compared(pair.getFirst(), pair.getLast()))
        .toList();
  }

  private Comparison compared(Study<?> before, Study<?> after) {
    return absolute
        ? Comparison.ofTimes(before, after, share)
        : Comparison.of(before, after, share);
  }

  private static String settings(Source source) {
    return String.join(" and ", source.studies().stream().map(Study::setting).toList());
  }

  private static Optional<Differences> differences(Source a, Source b) {
    return a.manifest().isPresent() && b.manifest().isPresent()
        ? Optional.of(Differences.between(a.manifest().get(), b.manifest().get()))
        : Optional.empty();
  }

  private static Verdict verdict(List<Comparison> comparisons) {
    return Stream.of(
            Verdict.SLOW,
            Verdict.MACHINE_DIFFERED,
            Verdict.FAST,
            Verdict.UNDECIDED,
            Verdict.NOT_COMPARED)
        .filter(verdict -> comparisons.stream().anyMatch(each -> each.verdict() == verdict))
        .findFirst()
        .orElse(Verdict.SAME);
  }

  private static void print(
      Source a,
      Source b,
      List<Comparison> comparisons,
      Optional<Differences> differences,
      PrintWriter out) {
    out.println("first   " + a.id());
    out.println("second  " + b.id());
    if (differences.isEmpty()) {
      out.println("what differs is not known: a study without a manifest");
    } else if (differences.get().all().isEmpty()) {
      out.println("nothing that is recorded differs");
    } else {
      differences.get().lines("first", "second").forEach(out::println);
    }
    for (var comparison : comparisons) {
      out.println();
      out.println(comparison);
    }
    int notCompared = notCompared(a, b, comparisons);
    if (notCompared > 0) {
      out.println(
          "not compared: %s, because the runs do not share the problem or its configurations"
              .formatted(Counted.of(notCompared, "study", "studies")));
    }
  }

  private static int notCompared(Source a, Source b, List<Comparison> comparisons) {
    return Stream.of(a, b)
        .mapToInt(each -> each.studies().size() + each.unpooled() - comparisons.size())
        .sum();
  }
}
