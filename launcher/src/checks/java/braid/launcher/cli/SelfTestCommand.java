package braid.launcher.cli;

import braid.launcher.Counted;
import braid.launcher.ExitCode;
import braid.launcher.Nearest;
import braid.launcher.OutputFile;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.cli.run.SignalledSession;
import braid.launcher.notebook.run.CellAttempt;
import braid.launcher.notebook.run.StopRequest;
import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.output.OutputLimit;
import braid.launcher.selftest.SelfTestCell;
import braid.launcher.selftest.SelfTestFacts;
import braid.launcher.selftest.SelfTestResult;
import braid.launcher.selftest.SelfTestTable;
import braid.launcher.selftest.TestedConfiguration;
import braid.launcher.selftest.TestedConfiguration.Outcome;
import braid.launcher.selftest.TestedConfigurations;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import braid.model.MemoryKind;
import braid.natives.WholeFile;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import braid.selftest.SelfTest;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid selftest`: the library's self-test on all ranks, without a notebook.
@Command(
    name = "selftest",
    description =
        "Runs every pattern by every method, attention and its gradients, every collective over"
            + " every transport, chains, own schedules and bound tensors, then random programs, on"
            + " all ranks, and compares with plain loops.",
    mixinStandardHelpOptions = true,
    exitCodeList = {
      " 0:everything available is correct",
      " 1:the self-test itself failed",
      " 2:a mistake in the options, or nothing requested is available",
      " 3:something is wrong",
      " 4:a time limit",
      " 130:Ctrl-C",
      " 138:a rank died",
      " 143:SIGTERM",
    },
    footer = {
      "  braid selftest",
      "  braid selftest -n 4 --backend cuda --memory native,nccl --json selftest.json",
      "  braid selftest --backend host --quick --timeout 300",
      "  braid selftest --only attention-backward --memory native --seed 42",
      "  braid selftest -n 2 --quick --random 500 --seed 42",
    })
public final class SelfTestCommand implements Callable<Integer>, CheckCommand {
  /// Limit of drawn seeds, to keep them short.
  private static final int DRAWN_SEEDS = 1_000_000_000;

  @Mixin private RankOptions ranks = new RankOptions();

  @Option(
      names = "--memory",
      paramLabel = "KIND",
      split = ",",
      description =
          "Only these kinds of symmetric memory: native, ipc, nccl, nvshmem. Default: all.")
  private List<String> memory = new ArrayList<>();

  @Option(
      names = "--only",
      paramLabel = "TEXT[;TEXT...]",
      description =
          "Only subjects with one of these texts in their name, for example"
              + " \"attention;check:\". Default: all.")
  private String only = "";

  @Option(names = "--quick", description = "One size and no tuning options.")
  private boolean quick;

  @Option(
      names = "--random",
      paramLabel = "N",
      description =
          "Random programs after the fixed cases. Default: 200, with --quick or --only 0.")
  private @Nullable String random;

  @Option(
      names = "--seed",
      paramLabel = "S",
      description =
          "Seed of the cases of attention, and of the first random program; each next one has the"
              + " next. Default: drawn and printed.")
  private @Nullable String seed;

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      description = "Ends the self-test after this time.")
  private @Nullable String timeout;

  @Option(names = "--json", paramLabel = "FILE", description = "Writes the results as JSON.")
  private @Nullable Path json;

  @Option(
      names = "--record",
      paramLabel = "FILE",
      description =
          "Writes a compact record as JSON: the results in groups, as docs/results/gpu keeps them.")
  private @Nullable Path record;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public boolean runsCells() {
    return true;
  }

  @Override
  public Integer call() throws IOException {
    var limits = TimeLimits.of(timeout, null);
    int programs = programs();
    long first = seed();
    var subjects = subjects();
    var kinds = memory.stream().map(SelfTestCommand::kind).distinct().toList();
    var file = writable("--json", json);
    var recordFile = writable("--record", record);
    var env = Env.here();
    var given = ranks.session(env, env.machine(), Path.of("").toAbsolutePath());
    // Results are lines of output: thousands of ways need more than the default.
    var options = ranks.limitsOutput() ? given : given.outputLimit(OutputLimit.MOST);
    requireSubjects(subjects, options);

    var err = spec.commandLine().getErr();
    print(
        err, "on %s, backend %s".formatted(Counted.of(options.ranks(), "rank"), options.backend()));
    print(
        err,
        "--seed %d determines %sthe cases of attention"
            .formatted(
                first, programs > 0 ? Counted.of(programs, "random program") + " and " : ""));
    var stop = new StopRequest();
    var result =
        SignalledSession.run(
            options,
            stop::request,
            session ->
                run(
                    session,
                    SelfTestCell.source(kinds, subjects, quick, programs, first),
                    limits,
                    stop,
                    err));
    if (file.isPresent() || recordFile.isPresent()) {
      var about = about(options, env.machine().gpus().driver());
      if (file.isPresent()) {
        WholeFile.write(file.get(), result.json(about));
      }
      if (recordFile.isPresent()) {
        WholeFile.write(recordFile.get(), result.record(about));
      }
    }
    report(result, options, programs > 0 ? OptionalLong.of(first) : OptionalLong.empty(), file);
    recordFile.ifPresent(path -> spec.commandLine().getOut().println("record   " + path));
    spec.commandLine().getOut().flush();
    return result.exitCode().code();
  }

  private static Optional<Path> writable(String option, @Nullable Path file) {
    return file == null ? Optional.empty() : Optional.of(OutputFile.writable(option, file));
  }

  private int programs() {
    if (random == null) {
      return quick || !only.isEmpty() ? 0 : SelfTest.DEFAULT_RANDOM_PROGRAMS;
    }
    var count = number(random);
    if (count.isEmpty() || count.get() < 0 || count.get() > Integer.MAX_VALUE) {
      throw new BraidException(
          "--random must be a number of programs, 0 or more, but was %s; try --random %d"
              .formatted(random, SelfTest.DEFAULT_RANDOM_PROGRAMS));
    }
    return Math.toIntExact(count.get());
  }

  private List<String> subjects() {
    var texts = Arrays.stream(only.split(";")).map(String::strip).filter(text -> !text.isEmpty());
    var subjects = texts.toList();
    if (!only.isEmpty() && (subjects.isEmpty() || !only.matches("[\\w :;'-]+"))) {
      throw new BraidException(
          "--only must be texts of letters, digits, spaces, ' : and - but was %s; try --only attention"
              .formatted(only));
    }
    return subjects;
  }

  /// Refuses a text that no subject has. Only ranks know their GPU checks, `check: …`, the units
  /// that communicate, `units-of …`, and the forms that they compare, `compared …`.
  private static void requireSubjects(List<String> texts, SessionOptions options) {
    if (texts.stream().allMatch(SelfTestCommand::isOfRanks)) {
      return;
    }
    var known = SelfTest.subjects(options.backend().kind(), options.ranks());
    for (var text : texts) {
      if (!isOfRanks(text) && known.stream().noneMatch(subject -> subject.contains(text))) {
        throw new BraidException(
            "--only must be part of a subject, %s, check:, units-of or compared, but was %s; did you mean %s?"
                .formatted(String.join(", ", known), text, Nearest.to(text, known)));
      }
    }
  }

  private static boolean isOfRanks(String text) {
    return text.startsWith("check") || text.startsWith("units") || text.startsWith("compared");
  }

  private long seed() {
    if (seed == null) {
      return ThreadLocalRandom.current().nextInt(DRAWN_SEEDS);
    }
    return number(seed)
        .orElseThrow(
            () ->
                new BraidException(
                    "--seed must be a whole number but was %s; try --seed 42".formatted(seed)));
  }

  private static Optional<Long> number(String text) {
    try {
      return Optional.of(Long.parseLong(text));
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
  }

  private static MemoryKind kind(String name) {
    var kind = MemoryKind.parse(name);
    if (kind == MemoryKind.AUTO) {
      throw new BraidException(
          "--memory must be one of native, ipc, nccl, nvshmem but was auto; leave it out for all");
    }
    return kind;
  }

  private static SelfTestResult run(
      Session session, String source, TimeLimits limits, StopRequest stop, PrintWriter err) {
    var results =
        new TestedConfigurations(
            new Progress(err),
            text -> {
              err.print(text);
              err.flush();
            });
    var outcome =
        new CellAttempt(session, new Cell("self-test", source), results).run(limits, stop);
    return new SelfTestResult(results.ways(), results.running(), outcome.failure());
  }

  /// Prints a line for each pattern or collective in each kind of memory, and for each failure.
  private static final class Progress implements Consumer<TestedConfiguration> {
    private final PrintWriter err;
    private String last = "";

    Progress(PrintWriter err) {
      this.err = err;
    }

    @Override
    public void accept(TestedConfiguration way) {
      if (way.outcome() == Outcome.WRONG) {
        print(err, "WRONG: %s: %s".formatted(way.words(), way.said()));
      }
      var now =
          way.memory().equals("-") ? way.what() : way.what() + " in " + way.memory() + " memory";
      if (way.outcome() == Outcome.OK && !now.equals(last)) {
        last = now;
        print(err, now);
      }
    }
  }

  private static void print(PrintWriter err, String line) {
    err.println("braid selftest: " + line);
    err.flush();
  }

  /// Loads NVIDIA's libraries, after ranks on GPUs have ended: they have chosen the same ones.
  private JsonObject about(SessionOptions options, String driver) {
    var versions = new TreeMap<String, String>();
    if (options.backend().isCuda()) {
      for (var library : Library.values()) {
        Libraries.find(library)
            .ifPresent(
                found -> versions.put(library.name().toLowerCase(Locale.ROOT), found.version()));
      }
    }
    var facts =
        SelfTestFacts.of(
            Installation.version(),
            LocalDate.now(ZoneOffset.UTC),
            options,
            quick,
            driver,
            versions);
    if (!only.isEmpty()) {
      facts.addProperty("only", only);
    }
    return facts;
  }

  private static String randomPrograms(List<TestedConfiguration> ways, long first) {
    var programs =
        ways.stream().filter(way -> way.what().equals(SelfTest.RANDOM_PROGRAMS)).toList();
    int run = programs.stream().mapToInt(TestedConfiguration::cases).sum();
    long wrong = programs.stream().filter(way -> way.outcome() == Outcome.WRONG).count();
    return "random   %s from --seed %d: %d right, %d wrong"
        .formatted(Counted.of(run, "program"), first, run - wrong, wrong);
  }

  private void report(
      SelfTestResult result, SessionOptions options, OptionalLong first, Optional<Path> file) {
    var out = spec.commandLine().getOut();
    SelfTestTable.lines(result.ways()).forEach(out::println);
    result.failure().map(CellFailure::traceback).ifPresent(lines -> lines.forEach(out::println));
    if (result.exitCode() == ExitCode.USAGE) {
      out.println("nothing requested is available; see braid doctor");
    }
    first.ifPresent(from -> out.println(randomPrograms(result.ways(), from)));
    out.println(
        "selftest %s, %s: %s"
            .formatted(
                options.backend().kind().toString(),
                Counted.of(options.ranks(), "rank"),
                result.summary()));
    file.ifPresent(path -> out.println("json     " + path));
    out.flush();
  }
}
