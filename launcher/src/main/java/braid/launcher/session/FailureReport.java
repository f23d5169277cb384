package braid.launcher.session;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.compile.Origins;
import braid.launcher.fanout.FanOut;
import braid.launcher.fanout.Invocation;
import braid.launcher.fanout.Invocation.Ending;
import braid.launcher.ranks.Death;
import braid.launcher.wire.FromRank;
import braid.launcher.wire.RankFailure;
import braid.model.GroupAborted;
import braid.model.VerificationFailed;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import jdk.jshell.UnresolvedReferenceException;
import org.jspecify.annotations.Nullable;

/// Explains why a cell failed, root cause first: rank, line, exception and causes; then the state
/// of the other ranks. Ranks with the same failure are listed once.
final class FailureReport {
  private static final int MAX_FRAMES = 12;

  /// Variable of a cell in the JVM's message, with the class that JShell keeps it in.
  private static final Pattern NULL_VARIABLE =
      Pattern.compile("because \"REPL\\.\\$JShell\\$\\w+\\.(\\w+)\" is null");

  /// Value of `all` for a cell that ran in the front.
  private static final int FRONT = 0;

  private final Cell cell;
  private final Origins origins;
  private final int all;
  private final List<String> text = new ArrayList<>();
  private final List<Integer> givenUp = new ArrayList<>();
  private final List<Death> frozen;

  private FailureReport(Cell cell, Origins origins, int all, List<Death> frozen) {
    this.frozen = frozen;
    this.all = all;
    this.cell = cell;
    this.origins = origins;
  }

  /// Returns the failure of a cell. `all` is the number of ranks of the session; `mapped` is the
  /// root cause as JShell saw it, whose stack names snippets; `frozen` are ranks that were not
  /// waited for.
  static CellFailure of(
      Cell cell,
      Origins origins,
      int all,
      Map<Integer, Ending> ended,
      @Nullable Throwable mapped,
      boolean interrupted,
      List<Death> frozen) {
    return new FailureReport(cell, origins, all, frozen)
        .build(new TreeMap<>(ended), mapped, interrupted);
  }

  /// Returns the failure of a cell that ran in the front.
  static CellFailure ofFront(
      Cell cell,
      Origins origins,
      Optional<RankFailure> failure,
      @Nullable Throwable mapped,
      boolean interrupted) {
    var ended = new TreeMap<Integer, Ending>();
    failure.ifPresent(how -> ended.put(0, new Ending.Answered(new FromRank.Failed(how))));
    return new FailureReport(cell, origins, FRONT, List.of()).build(ended, mapped, interrupted);
  }

  /// Returns the failure of an interrupted cell of which nothing ran, or everything succeeded.
  static CellFailure interrupted(Cell cell) {
    var message = cell.name() + " was interrupted";
    return new CellFailure(Cause.INTERRUPTED, "Interrupted", message, List.of(message));
  }

  /// Returns the failure of a cell after a rank's death.
  static CellFailure dead(Death death) {
    var message = death + " earlier; %restart starts new ranks";
    return new CellFailure(Cause.RANK_DIED, "RankDied", message, List.of(message));
  }

  /// Returns the failure of an interrupted cell whose frozen ranks were ended although no step
  /// failed.
  static CellFailure ended(Cell cell, List<Death> frozen) {
    var message = cell.name() + " was interrupted; " + unanswering(frozen);
    return new CellFailure(
        Cause.RANK_DIED, "Interrupted", message, List.of(message, "%restart starts new ranks."));
  }

  private static String unanswering(List<Death> frozen) {
    return frozen.stream().map(Death::name).collect(Collectors.joining(", "))
        + " did not answer and "
        + wasOrWere(frozen)
        + " ended";
  }

  private boolean isFrozen(int rank) {
    return frozen.stream().anyMatch(death -> death.rank() == rank);
  }

  /// Returns the failure of a cell that was interrupted twice: ranks were ended and new ones
  /// started.
  static CellFailure killed(
      Cell cell, Optional<Integer> line, List<Integer> dead, List<String> before) {
    var message =
        "%s%s was interrupted twice: %s did not stop; the ranks were ended and new ones started; all declarations are lost"
            .formatted(
                cell.name(),
                line.map(n -> ", line " + n + ",").orElse(""),
                (dead.size() == 1 ? "rank " : "ranks ")
                    + dead.stream().map(String::valueOf).collect(Collectors.joining(", ")));
    var text = new ArrayList<>(List.of(message));
    before.stream().filter(said -> said.endsWith("released.")).forEach(text::add);
    return new CellFailure(Cause.INTERRUPTED, "Interrupted", message, text);
  }

  private CellFailure build(
      Map<Integer, Ending> ended, @Nullable Throwable mapped, boolean interrupted) {
    var failures = new TreeMap<Integer, RankFailure>();
    var deaths = new ArrayList<Death>();
    ended.forEach(
        (rank, ending) -> {
          Invocation.failure(ending).ifPresent(f -> failures.put(rank, f));
          if (ending instanceof Ending.Dead(var how, var byUs) && !isFrozen(rank)) {
            if (byUs) {
              givenUp.add(rank);
            } else {
              deaths.add(how.death());
            }
          }
        });
    var root = FanOut.rootCause(ended);
    if (!deaths.isEmpty()) {
      var message = Death.together(deaths) + " while " + cell.name() + " ran" + line(mapped);
      text.add(message);
      others(failures, null);
      text.add("%restart starts new ranks.");
      return new CellFailure(Cause.RANK_DIED, "RankDied", message, text);
    }
    if (interrupted && root.map(Invocation::isConsequence).orElse(true)) {
      var message =
          cell.name()
              + " was interrupted"
              + line(mapped)
              + endedByUs().map(who -> "; " + who).orElse("");
      text.add(message);
      waiting(failures);
      if (endedByUs().isPresent()) {
        text.add("%restart starts new ranks.");
      }
      return new CellFailure(
          endedByUs().isEmpty() ? Cause.INTERRUPTED : Cause.RANK_DIED,
          "Interrupted",
          message,
          text);
    }
    if (root.isEmpty()) {
      var message =
          mapped == null ? "the cell failed without a reason" : String.valueOf(mapped.getMessage());
      return new CellFailure(Cause.EXCEPTION, "InternalError", message, List.of(message));
    }
    return thrown(root.get(), failures, mapped);
  }

  private CellFailure thrown(
      RankFailure root, Map<Integer, RankFailure> failures, @Nullable Throwable mapped) {
    var first = root.root();
    var alike = ranksLike(root, failures);
    var message = message(root, mapped);
    text.add(ranks(alike) + " failed in " + cell.name() + line(mapped));
    excerpt(mapped);
    text.add("");
    text.add(simpleName(first.className()) + (message.isEmpty() ? "" : ": " + message));
    frames(mapped, first);
    for (var cause : root.chain().subList(1, root.chain().size())) {
      text.add("  caused by " + cause);
    }
    others(failures, root);
    endedByUs().ifPresent(who -> text.add(who + "; %restart starts new ranks."));
    boolean verification = root.find(VerificationFailed.class).isPresent();
    return new CellFailure(
        verification ? Cause.VERIFICATION : Cause.EXCEPTION, first.className(), message, text);
  }

  private String message(RankFailure root, @Nullable Throwable mapped) {
    if (root.cause() == RankFailure.Cause.UNRESOLVED
        && mapped instanceof UnresolvedReferenceException unresolved) {
      return "it calls `"
          + unresolved.getSnippet().name()
          + "`, which refers to something not declared yet";
    }
    var message = root.root().message();
    var variable = NULL_VARIABLE.matcher(message);
    if (!root.root().className().equals(NullPointerException.class.getName()) || !variable.find()) {
      return message;
    }
    return origins.isUnassigned(variable.group(1))
        ? "`%s` is null: the cell that declares it failed; run that cell again"
            .formatted(variable.group(1))
        : variable.replaceFirst("because \"$1\" is null");
  }

  /// Adds the failures of ranks other than the root cause.
  private void others(Map<Integer, RankFailure> failures, @Nullable RankFailure root) {
    failures.values().stream()
        .filter(f -> !Invocation.isConsequence(f))
        .filter(f -> root == null || !alike(f, root))
        .map(RankFailure::root)
        .map(RankFailure.Thrown::toString)
        .distinct()
        .forEach(
            waited ->
                text.add(
                    ranks(
                            failures.entrySet().stream()
                                .filter(e -> e.getValue().root().toString().equals(waited))
                                .map(Map.Entry::getKey)
                                .toList())
                        + " failed with "
                        + waited));
    waiting(failures);
  }

  private void waiting(Map<Integer, RankFailure> failures) {
    var waits = new TreeMap<String, List<Integer>>();
    var stopped = new ArrayList<Integer>();
    failures.forEach(
        (rank, failure) -> {
          var aborted = failure.find(GroupAborted.class);
          if (aborted.isPresent()) {
            var waited = GroupAborted.waitedFor(aborted.get().message());
            waits.computeIfAbsent(waited, w -> new ArrayList<>()).add(rank);
          } else if (failure.cause() == RankFailure.Cause.STOPPED) {
            stopped.add(rank);
          }
        });
    waits.forEach(
        (waited, ranks) ->
            text.add(
                ranks(ranks)
                    + " waited for "
                    + waited
                    + " and "
                    + wasOrWere(ranks)
                    + " released."));
    if (!stopped.isEmpty() && all != FRONT) {
      text.add(ranks(stopped) + " " + wasOrWere(stopped) + " stopped.");
    }
  }

  /// Returns the ranks that the session ended, if any.
  private Optional<String> endedByUs() {
    var ended = new ArrayList<String>();
    if (!frozen.isEmpty()) {
      ended.add(unanswering(frozen));
    }
    if (!givenUp.isEmpty()) {
      ended.add(ranks(givenUp) + " did not stop and " + wasOrWere(givenUp) + " ended");
    }
    return ended.isEmpty() ? Optional.empty() : Optional.of(String.join("; ", ended));
  }

  private static String wasOrWere(List<?> ranks) {
    return ranks.size() == 1 ? "was" : "were";
  }

  private static List<Integer> ranksLike(RankFailure root, Map<Integer, RankFailure> failures) {
    return failures.entrySet().stream()
        .filter(e -> alike(e.getValue(), root))
        .map(Map.Entry::getKey)
        .toList();
  }

  private static boolean alike(RankFailure a, RankFailure b) {
    return a.cause() == b.cause() && a.root().toString().equals(b.root().toString());
  }

  private String ranks(List<Integer> ranks) {
    if (all == FRONT) {
      return "the front";
    }
    if (ranks.size() > 1 && ranks.size() == all) {
      return "all " + all + " ranks";
    }
    var names = ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
    return (ranks.size() == 1 ? "rank " : "ranks ") + names;
  }

  private static String simpleName(String className) {
    return className.substring(className.lastIndexOf('.') + 1);
  }

  private String line(@Nullable Throwable mapped) {
    var frame = frameOfThisCell(mapped);
    return frame == null
        ? origins.runningLine().map(n -> ", line " + n).orElse("")
        : origins.of(frame).map(o -> ", line " + o.line(frame.getLineNumber())).orElse("");
  }

  private void excerpt(@Nullable Throwable mapped) {
    var frame = frameOfThisCell(mapped);
    if (frame != null) {
      origins.of(frame).ifPresent(o -> text.addAll(o.excerpt(frame.getLineNumber())));
    }
  }

  private @Nullable StackTraceElement frameOfThisCell(@Nullable Throwable mapped) {
    if (mapped != null) {
      for (var frame : mapped.getStackTrace()) {
        if (origins.of(frame).filter(o -> o.cell().equals(cell.name())).isPresent()) {
          return frame;
        }
      }
    }
    return null;
  }

  /// Adds the stack frames down to the cell; the cell's own frames show cell and line.
  private void frames(@Nullable Throwable mapped, RankFailure.Thrown thrown) {
    var stack = mapped == null ? List.<StackTraceElement>of() : List.of(mapped.getStackTrace());
    if (stack.isEmpty()) {
      stack = thrown.stack();
    }
    int shown = 0;
    for (var frame : stack) {
      if (shown++ == MAX_FRAMES) {
        text.add("    … " + (stack.size() - MAX_FRAMES) + " more");
        return;
      }
      var origin = origins.of(frame);
      if (origin.isPresent()) {
        var method = frame.getMethodName().isEmpty() ? "" : frame.getMethodName() + ", ";
        text.add("    at " + method + origin.get().place(frame.getLineNumber()));
      } else {
        text.add("    at " + frame);
      }
    }
  }
}
