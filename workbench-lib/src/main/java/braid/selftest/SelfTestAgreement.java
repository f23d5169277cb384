package braid.selftest;

import braid.ProcessGroup;
import braid.internal.context.RankContext;
import braid.internal.resource.Rendezvous;
import braid.internal.selftest.CaseFailed;
import braid.model.BraidException;
import braid.model.GroupAborted;
import braid.model.Place;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Runs cases on all ranks of a group, one after the other, so that they agree about each.
///
/// Cases are run on a group of their own with the same members. Where a rank breaks a case off, the
/// ranks stand at different calls of that group: all of them leave it and take another, of another
/// name, while the group itself stays in step.
///
/// ```
/// rank 0   case 7 ── waits for rank 1 ── released by the alarm ── gather ─ new group ─ case 8
/// rank 1   case 7 ── fails, alarm ─────────────────────────────── gather ─ new group ─ case 8
/// ```
final class SelfTestAgreement implements AutoCloseable {
  private static final int SHOWN_FRAMES = 4;

  /// How a case ended on a rank, as the first letter of what it says.
  private enum End {
    RIGHT,
    /// In step with the others.
    WRONG,
    /// Somewhere in the middle.
    BROKEN_OFF,
    /// Because another rank did not go on.
    RELEASED
  }

  /// @param wrong what was wrong first; empty where all was right on all ranks
  /// @param stopped why no other case can be run; empty where one can
  record Verdict(String wrong, String stopped) {}

  /// Sets up what the members share, by what they gather.
  private record Gathering(ProcessGroup group, String unique) implements Rendezvous {
    @Override
    public Place place() {
      return group.place();
    }

    @Override
    public List<Integer> ranks() {
      return group.members();
    }

    @Override
    public List<String> exchange(String label, String value) {
      return group.gather(value);
    }
  }

  private record Said(End end, String what) {
    String text() {
      return end.name() + " " + what;
    }

    static Said of(String text) {
      int space = text.indexOf(' ');
      return new Said(End.valueOf(text.substring(0, space)), text.substring(space + 1));
    }
  }

  private final ProcessGroup group;
  private final Alarm alarm;
  private final String name;
  private @Nullable ProcessGroup ground;
  private int grounds;
  private long number;

  private SelfTestAgreement(ProcessGroup group, Alarm alarm, String name) {
    this.group = group;
    this.alarm = alarm;
    this.name = name;
  }

  static SelfTestAgreement on(ProcessGroup group) {
    // Names of groups that broke off must not come again in a later self-test.
    var name = "self-test-" + Long.toHexString(group.broadcast(System.nanoTime(), 0));
    var context = RankContext.current();
    var memory =
        context
            .backend()
            .control("self-test", Alarm.BYTES, new Gathering(group, group.name() + "." + name));
    return new SelfTestAgreement(group, new Alarm(group.place(), context.waits(), memory), name);
  }

  /// Runs it on this rank and hears what came of it on all.
  Verdict run(Consumer<ProcessGroup> body) {
    number++;
    var mine = end(body);
    try {
      var said = group.gather(mine.text()).stream().map(Said::of).toList();
      var wrong = worst(said);
      boolean inStep =
          said.stream().allMatch(each -> each.end() == End.RIGHT || each.end() == End.WRONG);
      return new Verdict(wrong, inStep ? "" : leave());
    } catch (GroupAborted released) {
      throw released;
    } catch (BraidException e) {
      var why = "the ranks do not meet any more: " + e.getMessage();
      return new Verdict(mine.end() == End.RIGHT ? why : mine.what(), why);
    }
  }

  private Said end(Consumer<ProcessGroup> body) {
    alarm.arm(number);
    try {
      body.accept(ground());
      return new Said(End.RIGHT, "");
    } catch (CaseFailed e) {
      return new Said(End.WRONG, line(e));
    } catch (GroupAborted e) {
      alarm.raise(number);
      return new Said(End.RELEASED, line(e));
    } catch (RuntimeException | Error e) {
      alarm.raise(number);
      return new Said(End.BROKEN_OFF, line(e));
    } finally {
      alarm.disarm();
    }
  }

  private static String line(Throwable e) {
    var message = e.getMessage();
    return (e instanceof BraidException && message != null ? message : unexpected(e))
        .replace('\n', ' ');
  }

  /// Where it happened is all there is to go by.
  private static String unexpected(Throwable e) {
    return e
        + Arrays.stream(e.getStackTrace())
            .limit(SHOWN_FRAMES)
            .map(frame -> " at " + frame)
            .collect(Collectors.joining());
  }

  private ProcessGroup ground() {
    var current = ground;
    if (current == null) {
      grounds++;
      current = group.subset(name + "-" + grounds, IntStream.range(0, group.size()).toArray());
      ground = current;
    }
    return current;
  }

  /// Causes come before consequences, and lower ranks before higher ones.
  private static String worst(List<Said> said) {
    for (var end : List.of(End.BROKEN_OFF, End.WRONG, End.RELEASED)) {
      for (int rank = 0; rank < said.size(); rank++) {
        if (said.get(rank).end() == end) {
          return "rank %d: %s".formatted(rank, said.get(rank).what());
        }
      }
    }
    return "";
  }

  /// Leaves the group that broke off; says what is wrong where a rank cannot.
  private String leave() {
    var trouble = "";
    try {
      close(ground);
    } catch (BraidException e) {
      trouble = "what broke off does not end: " + e.getMessage();
    }
    ground = null;
    return group.gather(trouble).stream().filter(each -> !each.isEmpty()).findFirst().orElse("");
  }

  private static void close(@Nullable ProcessGroup left) {
    if (left != null) {
      left.close();
    }
  }

  @Override
  public void close() {
    try {
      close(ground);
    } finally {
      alarm.close();
    }
  }
}
