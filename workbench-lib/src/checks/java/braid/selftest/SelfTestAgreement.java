package braid.selftest;

import braid.ProcessGroup;
import braid.internal.context.RankContext;
import braid.internal.rank.Waits;
import braid.internal.resource.Rendezvous;
import braid.internal.selftest.CaseFailed;
import braid.internal.shared.ControlMemory;
import braid.model.BraidException;
import braid.model.GroupAborted;
import braid.model.Place;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Runs cases in order on all ranks of a group, which agree on the result of each.
///
/// Cases run on a separate group of the same members. When a rank breaks a case off, the ranks are
/// at different calls of that group: all of them leave it and create another under a new name,
/// while the group itself stays in step.
///
/// ```
/// rank 0   case 7 ── waits for rank 1 ── released by the alarm ── gather ─ new group ─ case 8
/// rank 1   case 7 ── fails, alarm ─────────────────────────────── gather ─ new group ─ case 8
/// ```
final class SelfTestAgreement implements AutoCloseable {
  private static final int SHOWN_FRAMES = 4;

  /// How a case ended on a rank.
  private enum End {
    RIGHT,
    /// At the end of the case, in step with the others.
    WRONG,
    /// In the middle of the case.
    BROKEN_OFF,
    /// Released from a wait because another rank failed.
    RELEASED
  }

  /// Result of a case on all ranks.
  ///
  /// @param wrong first fault; empty if all ranks were right
  /// @param stopped reason why no further case can run; empty if one can
  record Verdict(String wrong, String stopped) {}

  /// Rendezvous whose exchanges are gathers of a group.
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

  private record RankResult(End end, String message) {
    String text() {
      return end.name() + " " + message;
    }

    static RankResult of(String text) {
      int space = text.indexOf(' ');
      return new RankResult(End.valueOf(text.substring(0, space)), text.substring(space + 1));
    }
  }

  private final ProcessGroup group;
  private final Alarm alarm;
  private final String name;
  private @Nullable ProcessGroup caseGroup;
  private int caseGroups;
  private long number;

  private SelfTestAgreement(ProcessGroup group, Alarm alarm, String name) {
    this.group = group;
    this.alarm = alarm;
    this.name = name;
  }

  static SelfTestAgreement on(ProcessGroup group) {
    // A later self-test must not reuse the names of groups whose case was aborted.
    var name = "self-test-" + Long.toHexString(group.broadcast(System.nanoTime(), 0));
    var context = RankContext.current();
    var memory =
        context
            .backend()
            .control("self-test", Alarm.BYTES, new Gathering(group, group.name() + "." + name));
    return new SelfTestAgreement(group, new Alarm(group.place(), context.waits(), memory), name);
  }

  /// Runs a case on this rank and returns the result of all ranks.
  Verdict run(Consumer<ProcessGroup> body) {
    number++;
    var mine = end(body);
    try {
      var results = group.gather(mine.text()).stream().map(RankResult::of).toList();
      var wrong = worst(results);
      boolean inStep =
          results.stream().allMatch(each -> each.end() == End.RIGHT || each.end() == End.WRONG);
      return new Verdict(wrong, inStep ? "" : leave());
    } catch (GroupAborted released) {
      throw released;
    } catch (BraidException e) {
      var reason = "the ranks can no longer meet: " + e.getMessage();
      return new Verdict(mine.end() == End.RIGHT ? reason : mine.message(), reason);
    }
  }

  private RankResult end(Consumer<ProcessGroup> body) {
    alarm.arm(number);
    try {
      body.accept(caseGroup());
      return new RankResult(End.RIGHT, "");
    } catch (CaseFailed e) {
      return new RankResult(End.WRONG, line(e));
    } catch (GroupAborted e) {
      alarm.raise(number);
      return new RankResult(End.RELEASED, line(e));
    } catch (RuntimeException | Error e) {
      alarm.raise(number);
      return new RankResult(End.BROKEN_OFF, line(e));
    } finally {
      alarm.disarm();
    }
  }

  private static String line(Throwable e) {
    var message = e.getMessage();
    return (e instanceof BraidException && message != null ? message : unexpected(e))
        .replace('\n', ' ');
  }

  /// Describes an unexpected exception by its first stack frames, since its message may not
  /// identify the fault.
  private static String unexpected(Throwable e) {
    return e
        + Arrays.stream(e.getStackTrace())
            .limit(SHOWN_FRAMES)
            .map(frame -> " at " + frame)
            .collect(Collectors.joining());
  }

  private ProcessGroup caseGroup() {
    var current = caseGroup;
    if (current == null) {
      caseGroups++;
      current = group.subset(name + "-" + caseGroups, IntStream.range(0, group.size()).toArray());
      caseGroup = current;
    }
    return current;
  }

  /// Returns the worst result: causes before consequences, and lower ranks before higher ones.
  private static String worst(List<RankResult> results) {
    for (var end : List.of(End.BROKEN_OFF, End.WRONG, End.RELEASED)) {
      for (int rank = 0; rank < results.size(); rank++) {
        if (results.get(rank).end() == end) {
          return "rank %d: %s".formatted(rank, results.get(rank).message());
        }
      }
    }
    return "";
  }

  /// Leaves the group whose case was aborted. Returns the reason if a rank cannot.
  private String leave() {
    var trouble = "";
    try {
      close(caseGroup);
    } catch (BraidException e) {
      trouble = "the group of the failed case cannot be closed: " + e.getMessage();
    }
    caseGroup = null;
    return group.gather(trouble).stream().filter(each -> !each.isEmpty()).findFirst().orElse("");
  }

  private static void close(@Nullable ProcessGroup abandoned) {
    if (abandoned != null) {
      abandoned.close();
    }
  }

  @Override
  public void close() {
    try {
      close(caseGroup);
    } finally {
      alarm.close();
    }
  }

  /// An alarm that a rank raises when it breaks off a case: otherwise the others would wait for its
  /// remaining calls until their timeout.
  private static final class Alarm implements AutoCloseable {
    /// Bytes per rank: one cache line, so that ranks do not slow each other down.
    static final long BYTES = 64;

    private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();
    private static final long NONE = 0;

    private final Place place;
    private final Waits waits;
    private final ControlMemory memory;
    private final Runnable checkPeers = this::checkPeers;
    private volatile long armed = NONE;

    /// @param memory host memory of [#BYTES] on each rank
    Alarm(Place place, Waits waits, ControlMemory memory) {
      this.place = place;
      this.waits = waits;
      this.memory = memory;
      waits.watch(checkPeers);
    }

    /// Ends this rank's waits from now on if another rank breaks off that case; cases are counted
    /// from 1.
    void arm(long number) {
      armed = number;
    }

    void disarm() {
      armed = NONE;
    }

    /// Reports that this rank has broken off that case.
    void raise(long number) {
      WORD.setRelease(memory.part(place.rank()), 0L, number);
      memory.publish(0, Long.BYTES);
    }

    private void checkPeers() {
      long number = armed;
      if (number == NONE) {
        return;
      }
      for (int rank = 0; rank < place.size(); rank++) {
        if (rank != place.rank() && (long) WORD.getAcquire(memory.part(rank), 0L) == number) {
          throw new GroupAborted("its part of a case", "rank " + rank + " broke the case off");
        }
      }
    }

    @Override
    public void close() {
      waits.unwatch(checkPeers);
      memory.close();
    }
  }
}
