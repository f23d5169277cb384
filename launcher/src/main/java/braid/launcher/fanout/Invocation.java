package braid.launcher.fanout;

import braid.GroupAborted;
import braid.launcher.ranks.RankDied;
import braid.launcher.ranks.RankProcess;
import braid.launcher.wire.FromRank;
import braid.launcher.wire.RankFailure;
import braid.launcher.wire.ToRank;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletionException;

/// One step of a cell on all its ranks, from the request to the last answer. When a rank fails, the
/// others may wait for it for ever; so they are released after a grace period, then stopped, and in
/// the end killed: an invocation always ends.
public final class Invocation {
  /// How one rank ended the step.
  public sealed interface Ending {
    record Answered(FromRank.Answer answer) implements Ending {}

    record Dead(RankDied how) implements Ending {}
  }

  /// Ranks often fail alike but not at once: let each tell its own failure.
  private static final Duration RELEASE_AFTER = Duration.ofMillis(500);

  /// A rank that runs on although its group has failed computes something nobody will get.
  private static final Duration STOP_AFTER = Duration.ofSeconds(3);

  /// The stop is told again: a rank that hears it before it has begun has nothing to stop yet.
  private static final Duration STOP_AGAIN = Duration.ofMillis(200);

  private static final Duration KILL_AFTER = Duration.ofSeconds(12);

  private final Map<Integer, RankProcess> asked = new TreeMap<>();
  private final Map<Integer, Ending> endings = new TreeMap<>();
  private String trouble = "";
  private long troubleNanos;
  private boolean interrupted;

  /// Asks the same of every rank of the list; the caller then waits.
  public Invocation(List<RankProcess> ranks, ToRank message) {
    ranks.forEach(r -> asked.put(r.rank(), r));
    for (var rank : ranks) {
      var _ =
          rank.request(message)
              .handle(
                  (answer, failure) -> {
                    ended(
                        rank.rank(), answer == null ? dead(failure) : new Ending.Answered(answer));
                    return answer;
                  });
    }
  }

  private static Ending dead(Throwable failure) {
    var cause =
        failure instanceof CompletionException && failure.getCause() != null
            ? failure.getCause()
            : failure;
    if (cause instanceof RankDied died) {
      return new Ending.Dead(died);
    }
    return new Ending.Answered(
        new FromRank.Failed(RankFailure.of(RankFailure.Kind.INTERNAL, -1, cause)));
  }

  private synchronized void ended(int rank, Ending ending) {
    endings.put(rank, ending);
    if (trouble.isEmpty()) {
      trouble(rank, ending);
    }
    notifyAll();
  }

  private void trouble(int rank, Ending ending) {
    var what =
        switch (ending) {
          case Ending.Dead(var how) -> how.getMessage();
          case Ending.Answered(FromRank.Failed(var failure)) ->
              "rank " + rank + " failed with " + failure.root();
          case Ending.Answered ignored -> "";
        };
    if (what != null && !what.isEmpty()) {
      trouble = what;
      troubleNanos = System.nanoTime();
    }
  }

  /// The user wants the step to end.
  public synchronized void interrupt() {
    interrupted = true;
    notifyAll();
  }

  public synchronized boolean wasInterrupted() {
    return interrupted;
  }

  /// Waits until every rank has answered or died.
  public synchronized Map<Integer, Ending> await() throws InterruptedException {
    boolean released = false;
    boolean killed = false;
    while (endings.size() < asked.size()) {
      if (interrupted && troubleNanos == 0) {
        trouble = "the cell was interrupted";
        troubleNanos = System.nanoTime() - STOP_AFTER.toNanos();
      }
      if (troubleNanos == 0) {
        wait();
        continue;
      }
      long since = System.nanoTime() - troubleNanos;
      long next;
      if (since < RELEASE_AFTER.toNanos()) {
        next = RELEASE_AFTER.toNanos();
      } else if (since < STOP_AFTER.toNanos()) {
        released = release(released);
        next = STOP_AFTER.toNanos();
      } else if (since < KILL_AFTER.toNanos()) {
        released = release(released);
        var _ = tellPending(new ToRank.Interrupt());
        next = Math.min(KILL_AFTER.toNanos(), since + STOP_AGAIN.toNanos());
      } else {
        killed = killed || killPending();
        wait();
        continue;
      }
      wait((next - since) / 1_000_000 + 1);
    }
    return Map.copyOf(endings);
  }

  private boolean release(boolean already) {
    return already || tellPending(new ToRank.Release(trouble));
  }

  private boolean tellPending(ToRank message) {
    asked.values().stream()
        .filter(r -> !endings.containsKey(r.rank()))
        .forEach(r -> r.tell(message));
    return true;
  }

  private boolean killPending() {
    asked.values().stream().filter(r -> !endings.containsKey(r.rank())).forEach(RankProcess::kill);
    return true;
  }

  /// The rank's failure, if it failed.
  public static Optional<RankFailure> failure(Ending ending) {
    return ending instanceof Ending.Answered(FromRank.Failed(var failure))
        ? Optional.of(failure)
        : Optional.empty();
  }

  /// Whether this failure was only the consequence of another rank's.
  public static boolean isConsequence(RankFailure failure) {
    return failure.kind() == RankFailure.Kind.STOPPED
        || failure.find(GroupAborted.class).isPresent();
  }
}
