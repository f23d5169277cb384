package braid.selftest;

import braid.Capabilities;
import braid.ProcessGroup;
import braid.TensorView;
import braid.internal.context.RankContext;
import braid.internal.cuda.CudaBackend;
import braid.internal.cuda.device.CudnnCheck;
import braid.internal.cuda.device.GemmCheck;
import braid.internal.cuda.device.KernelCheck;
import braid.internal.memory.Members;
import braid.internal.report.HtmlTable;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.Displayable;
import braid.model.MemoryKind;
import braid.model.MimeBundle;
import braid.model.SelfCheck;
import braid.natives.kernels.KernelChecks;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import tech.tablesaw.api.Table;

/// Self-test of a machine: runs every method of every pattern, and every collective by every route,
/// and compares the results with plain loops over small integers, to the last bit. Random problems
/// of attention are compared with plain loops in double precision.
///
/// ```java
/// var report = SelfTest.on(world).quick().run();
/// report.allRight();
/// report.table();
/// ```
///
/// All ranks of the group run it together and get the same report. A fault on one rank fails the
/// case; a rank that breaks off releases the others.
public final class SelfTest {
  /// Default number of random programs; a [#quick] self-test runs none.
  public static final int DEFAULT_RANDOM_PROGRAMS = 200;

  /// Name of the random programs in a report.
  public static final String RANDOM_PROGRAMS = "random programs";

  /// Limit of drawn seeds, to keep them short.
  private static final int SEEDS = 1_000_000_000;

  private final ProcessGroup group;
  private final Set<MemoryKind> kinds = new LinkedHashSet<>();
  private final Set<DType> dtypes = new LinkedHashSet<>();
  private final List<SelfCheck> checks = new ArrayList<>();
  private final Set<String> subjects = new LinkedHashSet<>();
  private boolean quick;
  private @Nullable Integer programs;
  private @Nullable Long seed;
  private Consumer<TensorView> alteration = _ -> {};
  private Consumer<Row> listener = _ -> {};
  private Consumer<String> beginning = _ -> {};

  private SelfTest(ProcessGroup group) {
    this.group = group;
  }

  /// Begins a self-test on a group.
  public static SelfTest on(ProcessGroup group) {
    var _ = group.place();
    return new SelfTest(group);
  }

  /// Tests only these kinds of symmetric memory; by default all that are available.
  public SelfTest kinds(MemoryKind... some) {
    once("kinds", kinds);
    if (some.length == 0 || Arrays.asList(some).contains(MemoryKind.AUTO)) {
      throw new BraidException(
          "kinds must be 1 or more of native, ipc, nccl and nvshmem but were %s; leave them out for all"
              .formatted(Arrays.toString(some)));
    }
    kinds.addAll(List.of(some));
    return this;
  }

  /// Tests only these types; by default all.
  public SelfTest dtypes(DType... some) {
    once("dtypes", dtypes);
    if (some.length == 0) {
      throw new BraidException("dtypes must be 1 or more but were none; leave them out for all");
    }
    dtypes.addAll(List.of(some));
    return this;
  }

  /// Tests only subjects whose name contains one of these texts: `attention-backward`, `check:`; by
  /// default all. Random programs run only if [#random] asks for them.
  public SelfTest only(String... texts) {
    once("subjects", subjects);
    if (texts.length == 0 || Arrays.stream(texts).anyMatch(String::isBlank)) {
      throw new BraidException(
          "subjects must be 1 or more texts but were %s; try only(\"attention\")"
              .formatted(Arrays.toString(texts)));
    }
    subjects.addAll(List.of(texts));
    return this;
  }

  /// Tests one size and no options: the smallest test that covers every configuration.
  public SelfTest quick() {
    quick = true;
    return this;
  }

  /// Runs that number of random programs at the end, from a random seed: they mix pipelines,
  /// collectives, views, groups of some ranks and mistakes. 0 runs none.
  public SelfTest random(int count) {
    if (programs != null) {
      throw new BraidException("random was set already: %d; set it once".formatted(programs));
    }
    if (count < 0) {
      throw new BraidException(
          "random programs must be 0 or more but were %d; try random(%d)"
              .formatted(count, DEFAULT_RANDOM_PROGRAMS));
    }
    programs = count;
    return this;
  }

  /// Runs random programs from a seed, the same on all ranks. Program i is determined by `from` +
  /// i, the number of ranks, and the tested kinds of memory, libraries and types.
  public SelfTest random(int count, long from) {
    var _ = random(count);
    seed = from;
    return this;
  }

  /// Adds a check, which runs first. All ranks add the same checks.
  public SelfTest check(SelfCheck more) {
    checks.add(more);
    return this;
  }

  /// Sets the listener that receives each row as soon as it is known, so that a self-test that
  /// breaks off has reported its results so far; only the last listener is called.
  public SelfTest each(Consumer<Row> receiver) {
    listener = receiver;
    return this;
  }

  /// Sets the listener that receives the text of each case before it runs: if a case does not end,
  /// the last text names it.
  public SelfTest beginning(Consumer<String> receiver) {
    beginning = receiver;
    return this;
  }

  /// Alters each result before it is checked, to prove that wrong results are found.
  SelfTest altering(Consumer<TensorView> change) {
    alteration = change;
    return this;
  }

  private static void once(String attribute, Set<?> before) {
    if (!before.isEmpty()) {
      throw new BraidException(
          "%s were set already: %s; set them once".formatted(attribute, before));
    }
  }

  /// Runs the self-test on all ranks of the group together.
  public Report run() {
    var place = group.place();
    var plan =
        new SelfTestPlan(
            kinds.isEmpty() ? Capabilities.kinds() : List.copyOf(kinds),
            List.copyOf(dtypes.isEmpty() ? Arrays.asList(DType.values()) : dtypes),
            List.copyOf(subjects),
            quick,
            new SelfTestPlan.Random(
                programs != null
                    ? programs
                    : quick || !subjects.isEmpty() ? 0 : DEFAULT_RANDOM_PROGRAMS,
                group.broadcast(
                    seed != null ? seed : ThreadLocalRandom.current().nextInt(SEEDS), 0)),
            Stream.concat(ofGpu().stream(), checks.stream()).toList());
    new Members(group.name(), group.members(), place)
        .requireSame("self-test", group.gather(plan.toString()));
    return new SelfTestRun(group, plan, alteration, listener, beginning).report();
  }

  /// Returns the checks of this rank's GPU; none on the host.
  private static List<SelfCheck> ofGpu() {
    return RankContext.current().backend() instanceof CudaBackend gpu
        ? Stream.<SelfCheck>concat(
                Stream.of(KernelChecks.Group.values())
                    .map(kernels -> new KernelCheck(gpu.device(), kernels)),
                Stream.of(new GemmCheck(gpu.device()), new CudnnCheck(gpu.device())))
            .toList()
        : List.of();
  }

  /// Returns the subjects of the cases of a backend; GPU checks, the communication of units and
  /// compared forms have others beside them.
  public static List<String> subjects(BackendKind backend, int ranks) {
    var plan =
        new SelfTestPlan(
            Capabilities.kinds(),
            Arrays.asList(DType.values()),
            List.of(),
            false,
            new SelfTestPlan.Random(0, 0),
            List.of());
    return plan.kinds().stream()
        .flatMap(
            kind ->
                plan
                    .cases(
                        kind, Capabilities.of(backend), Capabilities.collectivesOf(backend), ranks)
                    .keySet()
                    .stream())
        .map(Configuration::subject)
        .distinct()
        .toList();
  }

  /// One tested configuration; a part that does not apply is `-`.
  ///
  /// @param subject pattern, collective or check
  public record Configuration(
      String subject, String method, String transport, String memory, String dtype) {
    /// Placeholder of a part that does not apply, also of an empty one.
    public static final String ANY = "-";

    public Configuration {
      subject = subject.isEmpty() ? ANY : subject;
      method = method.isEmpty() ? ANY : method;
      transport = transport.isEmpty() ? ANY : transport;
      memory = memory.isEmpty() ? ANY : memory;
      dtype = dtype.isEmpty() ? ANY : dtype;
    }

    /// Returns the parts that apply: `attention, ring, workers, ipc, bf16`.
    String words() {
      return Stream.of(subject, method, transport, memory, dtype)
          .filter(part -> !part.equals(ANY))
          .collect(Collectors.joining(", "));
    }
  }

  /// Outcome of a configuration.
  public enum Outcome {
    OK,
    NOT_AVAILABLE,
    WRONG,
    /// The self-test stopped earlier.
    NOT_RUN
  }

  /// Result of a configuration.
  ///
  /// @param cases number of cases that were run
  /// @param said reason why it is not available, or the first fault; of a success, how to run the
  ///   same again if a seed determined it, the units that communicated, or the times of forms
  public record Row(Configuration configuration, Outcome outcome, int cases, String said) {
    static Row notAvailable(Configuration configuration, String reason) {
      return new Row(configuration, Outcome.NOT_AVAILABLE, 0, reason);
    }

    /// Returns the text in the table.
    public String result() {
      return switch (outcome) {
        case OK ->
            "ok (%d %s%s)"
                .formatted(cases, cases == 1 ? "case" : "cases", said.isEmpty() ? "" : "; " + said);
        case NOT_AVAILABLE -> "not available: " + said;
        case WRONG -> "wrong: " + said;
        case NOT_RUN -> "not run: " + said;
      };
    }
  }

  /// Result of a self-test, the same on all ranks.
  ///
  /// @param setting backend and number of ranks
  public record Report(String setting, List<Row> rows) implements Displayable {
    public Report {
      rows = List.copyOf(rows);
    }

    /// Returns true if everything that is available was run and is right.
    public boolean allRight() {
      return count(Outcome.OK) > 0 && count(Outcome.WRONG) == 0 && count(Outcome.NOT_RUN) == 0;
    }

    /// Returns one line, with the first fault.
    public String summary() {
      var wrong = rows.stream().filter(row -> row.outcome() == Outcome.WRONG).findFirst();
      return "self-test on %s: %d ways right (%d cases), %d wrong, %d not available%s%s"
          .formatted(
              setting,
              count(Outcome.OK),
              rows.stream().mapToInt(Row::cases).sum(),
              count(Outcome.WRONG),
              count(Outcome.NOT_AVAILABLE),
              count(Outcome.NOT_RUN) == 0 ? "" : ", %d NOT RUN".formatted(count(Outcome.NOT_RUN)),
              wrong
                  .map(row -> "; first: %s, %s".formatted(row.configuration(), row.result()))
                  .orElse(""));
    }

    private long count(Outcome outcome) {
      return rows.stream().filter(row -> row.outcome() == outcome).count();
    }

    /// Returns one row per configuration, the wrong ones first.
    public Table table() {
      return SelfTestTable.of(
          "self-test on " + setting,
          rows.stream().sorted(Comparator.comparingInt(row -> rank(row.outcome()))).toList());
    }

    private static int rank(Outcome outcome) {
      return switch (outcome) {
        case WRONG -> 0;
        case NOT_RUN -> 1;
        case OK -> 2;
        case NOT_AVAILABLE -> 3;
      };
    }

    @Override
    public MimeBundle display() {
      var table = table();
      return MimeBundle.text(summary() + "\n\n" + HtmlTable.text(table, HtmlTable.DEFAULT_ROWS))
          .with(
              MimeBundle.HTML,
              "<p><b>%s</b></p>%s"
                  .formatted(HtmlTable.escape(summary()), HtmlTable.html(table, table.rowCount())));
    }

    @Override
    public String toString() {
      return summary()
          + rows.stream()
              .filter(row -> row.outcome() == Outcome.WRONG)
              .map(row -> "\n%s: %s".formatted(row.configuration(), row.result()))
              .collect(Collectors.joining());
    }
  }
}
