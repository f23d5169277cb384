package braid.selftest;

import braid.Capabilities;
import braid.ProcessGroup;
import braid.Tensor;
import braid.internal.context.RankContext;
import braid.internal.memory.Members;
import braid.internal.report.HtmlTable;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.Displayable;
import braid.model.MemoryKind;
import braid.model.MimeBundle;
import braid.model.SelfCheck;
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

/// Whether everything comes out right on this machine: every way of every pattern and collective,
/// held to plain loops over small integers, to the last bit.
///
/// ```java
/// var report = SelfTest.on(world).quick().run();
/// report.allRight();
/// report.table();
/// ```
///
/// All ranks of the group run it together and get the same report. What is wrong on one rank is
/// wrong; a rank that breaks off keeps nobody waiting.
public final class SelfTest {
  /// Random programs of a self-test that is not [#quick], unless [#random] sets another number.
  public static final int DEFAULT_RANDOM_PROGRAMS = 200;

  /// Names random programs among the ways of a report.
  public static final String RANDOM_PROGRAMS = "random programs";

  /// Drawn seeds are below that, to be short.
  private static final int SEEDS = 1_000_000_000;

  private final ProcessGroup group;
  private final Set<MemoryKind> kinds = new LinkedHashSet<>();
  private final Set<DType> dtypes = new LinkedHashSet<>();
  private final List<SelfCheck> checks = new ArrayList<>();
  private boolean quick;
  private @Nullable Integer programs;
  private @Nullable Long seed;
  private Consumer<Tensor> handled = _ -> {};
  private Consumer<Row> heard = _ -> {};

  private SelfTest(ProcessGroup group) {
    this.group = group;
  }

  /// Begins a self-test on that group.
  public static SelfTest on(ProcessGroup group) {
    var _ = group.place();
    return new SelfTest(group);
  }

  /// Only in those kinds of symmetric memory; where it is not said, in all there are.
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

  /// Only in those types; where it is not said, in all.
  public SelfTest dtypes(DType... some) {
    once("dtypes", dtypes);
    if (some.length == 0) {
      throw new BraidException("dtypes must be 1 or more but were none; leave them out for all");
    }
    dtypes.addAll(List.of(some));
    return this;
  }

  /// One size and no options: the least that goes every way.
  public SelfTest quick() {
    quick = true;
    return this;
  }

  /// Runs that many random programs after all else, from a seed that is drawn: pipelines,
  /// collectives, views, groups of some ranks and mistakes, in turns. 0 runs none.
  public SelfTest random(int count) {
    if (programs != null) {
      throw new BraidException("random was said already: %d; say it once".formatted(programs));
    }
    if (count < 0) {
      throw new BraidException(
          "random programs must be 0 or more but were %d; try random(%d)"
              .formatted(count, DEFAULT_RANDOM_PROGRAMS));
    }
    programs = count;
    return this;
  }

  /// The same from that seed, which all ranks give alike. Program i follows from `from` + i, the
  /// ranks, and the kinds of memory, libraries and types that are tested.
  public SelfTest random(int count, long from) {
    var _ = random(count);
    seed = from;
    return this;
  }

  /// Runs that too, before all else. All ranks say the same checks.
  public SelfTest check(SelfCheck more) {
    checks.add(more);
    return this;
  }

  /// Tells what came of each way as soon as it is known; the last who asked is told. A self-test
  /// takes long, and one that breaks off has told what it had.
  public SelfTest each(Consumer<Row> hears) {
    heard = hears;
    return this;
  }

  /// Does that to each result before it is looked at.
  SelfTest handling(Consumer<Tensor> how) {
    handled = how;
    return this;
  }

  private static void once(String what, Set<?> before) {
    if (!before.isEmpty()) {
      throw new BraidException("%s were said already: %s; say them once".formatted(what, before));
    }
  }

  /// Runs it to its end, on all ranks of the group together.
  public Report run() {
    var place = group.place();
    var plan =
        new SelfTestPlan(
            kinds.isEmpty() ? Capabilities.kinds() : List.copyOf(kinds),
            List.copyOf(dtypes.isEmpty() ? Arrays.asList(DType.values()) : dtypes),
            quick,
            new SelfTestPlan.Random(
                programs != null ? programs : quick ? 0 : DEFAULT_RANDOM_PROGRAMS,
                group.broadcast(
                    seed != null ? seed : ThreadLocalRandom.current().nextInt(SEEDS), 0)),
            Stream.concat(RankContext.current().backend().selfChecks().stream(), checks.stream())
                .toList());
    new Members(group.name(), group.members(), place)
        .requireSame("self-test", group.gather(plan.toString()));
    return new SelfTestRun(group, plan, handled, heard).report();
  }

  /// One way to compute or communicate; what a part does not matter for is `-`.
  ///
  /// @param what the pattern, the collective or the check
  public record Way(String what, String method, String transport, String memory, String dtype) {
    /// In place of what has no meaning here.
    public static final String ANY = "-";
  }

  /// What came of a way.
  public enum Outcome {
    OK,
    NOT_AVAILABLE,
    WRONG,
    /// The self-test stopped before.
    NOT_RUN
  }

  /// @param cases that were run
  /// @param said why it is not available, or what was wrong first; of what is right, how to run the
  ///   same again where a seed decided it
  public record Row(Way way, Outcome outcome, int cases, String said) {
    /// As it stands in the table.
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

  /// What was found, the same on all ranks.
  ///
  /// @param where the backend and the number of ranks
  public record Report(String where, List<Row> rows) implements Displayable {
    public Report {
      rows = List.copyOf(rows);
    }

    /// Whether everything that is available was run and came out right.
    public boolean allRight() {
      return count(Outcome.OK) > 0 && count(Outcome.WRONG) == 0 && count(Outcome.NOT_RUN) == 0;
    }

    /// In one line; what was wrong first is in it.
    public String summary() {
      var wrong = rows.stream().filter(row -> row.outcome() == Outcome.WRONG).findFirst();
      return "self-test on %s: %d ways right (%d cases), %d wrong, %d not available%s%s"
          .formatted(
              where,
              count(Outcome.OK),
              rows.stream().mapToInt(Row::cases).sum(),
              count(Outcome.WRONG),
              count(Outcome.NOT_AVAILABLE),
              count(Outcome.NOT_RUN) == 0 ? "" : ", %d NOT RUN".formatted(count(Outcome.NOT_RUN)),
              wrong.map(row -> "; first: %s, %s".formatted(row.way(), row.result())).orElse(""));
    }

    private long count(Outcome outcome) {
      return rows.stream().filter(row -> row.outcome() == outcome).count();
    }

    /// A row for each way, what is wrong first.
    public Table table() {
      return SelfTestTable.of(
          "self-test on " + where,
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
              .map(row -> "\n%s: %s".formatted(row.way(), row.result()))
              .collect(Collectors.joining());
    }
  }
}
