package braid.launcher.fanout;

import braid.launcher.cell.RunningCell;
import braid.launcher.ranks.RankDied;
import braid.launcher.ranks.RankProcess;
import braid.launcher.wire.FromRank;
import braid.launcher.wire.RankFailure;
import braid.launcher.wire.ToRank;
import braid.model.GroupAborted;
import braid.model.MimeBundle;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/// One step of a cell on all its ranks, from the request to the last answer. When a rank fails, the
/// others may wait for it forever; so they are released after a grace period, then stopped, and
/// finally killed: an invocation always ends.
public final class Invocation {
  /// End of the step on one rank.
  public sealed interface Ending {
    record Answered(FromRank.Answer answer) implements Ending {}

    /// The rank died; `givenUp` is true if it was killed because it did not end in time.
    record Dead(RankDied death, boolean givenUp) implements Ending {}
  }

  /// Ranks often fail alike but not at once: each gets time to report its own failure.
  private static final Duration RELEASE_AFTER = Duration.ofMillis(500);

  /// A rank that continues after its group has failed computes a useless result.
  private static final Duration STOP_AFTER = Duration.ofSeconds(3);

  /// Interval of repeated stops: a rank that receives one before it has begun has nothing to stop
  /// yet, and code may catch one.
  private static final Duration STOP_AGAIN = Duration.ofMillis(200);

  static final Duration KILL_AFTER = Duration.ofSeconds(12);

  /// Time for a rank to stop before [RunningCell#kill] kills it.
  private static final Duration KILL_GRACE = Duration.ofSeconds(1);

  /// Time for a frozen rank to stop; it can only do so if it is continued.
  static final Duration FROZEN_GRACE = Duration.ofSeconds(1);

  /// Interval of checks for departed ranks, once a rank waits.
  private static final Duration POLL = Duration.ofMillis(100);

  private final Map<Integer, RankProcess> requested = new TreeMap<>();
  private final Map<Integer, Ending> endings = new TreeMap<>();
  private final Set<Integer> givenUp = new TreeSet<>();
  private final List<RankProcess> all;
  private final Map<Integer, CompletableFuture<Boolean>> idle = new TreeMap<>();
  private final Set<Integer> departed = new TreeSet<>();
  private final RunningCell cell;
  private final boolean isCell;
  private final long step;
  private final long startNanos = System.nanoTime();
  private String problem = "";
  private long problemNanos;

  /// Sends the message to every rank of the list; the caller then waits. `all` are the ranks of the
  /// session: those without the request cannot participate either. The request ends when `cell` is
  /// interrupted, before or after this.
  Invocation(List<RankProcess> ranks, List<RankProcess> all, ToRank message, RunningCell cell) {
    this.all = all;
    this.cell = cell;
    isCell = message instanceof ToRank.Invoke;
    step = message instanceof ToRank.Invoke invoke ? invoke.step() : 0;
    ranks.forEach(r -> requested.put(r.rank(), r));
    for (var rank : ranks) {
      var _ =
          rank.request(message)
              .handle(
                  (answer, failure) -> {
                    ended(
                        rank.rank(),
                        answer == null ? dead(rank.rank(), failure) : new Ending.Answered(answer));
                    return answer;
                  });
    }
  }

  private synchronized Ending dead(int rank, Throwable failure) {
    var cause =
        failure instanceof CompletionException && failure.getCause() != null
            ? failure.getCause()
            : failure;
    if (cause instanceof RankDied died) {
      return new Ending.Dead(died, givenUp.contains(rank));
    }
    return new Ending.Answered(
        new FromRank.Failed(RankFailure.of(RankFailure.Cause.INTERNAL, -1, cause)));
  }

  private synchronized void ended(int rank, Ending ending) {
    endings.put(rank, ending);
    if (problem.isEmpty()) {
      problem(rank, ending);
    }
    notifyAll();
  }

  private void problem(int rank, Ending ending) {
    var description =
        switch (ending) {
          case Ending.Dead(var death, _) -> death.getMessage();
          case Ending.Answered(FromRank.Failed(var failure)) ->
              "rank " + rank + " failed with " + failure.root();
          case Ending.Answered ignored -> "";
        };
    if (description != null && !description.isEmpty()) {
      problem = description;
      problemNanos = System.nanoTime();
    }
  }

  /// Stops the step: its cell was interrupted.
  synchronized void stop() {
    notifyAll();
  }

  /// Reports ranks of an interrupted cell that have not stopped as ended because of that, not as
  /// dead by themselves.
  synchronized void giveUp() {
    if (cell.isInterrupted()) {
      givenUp.addAll(pending());
    }
  }

  /// Returns the ranks that have not ended yet.
  public synchronized List<Integer> pending() {
    return requested.keySet().stream().filter(rank -> !endings.containsKey(rank)).toList();
  }

  /// Waits until every rank has answered or died.
  public synchronized Map<Integer, Ending> await() throws InterruptedException {
    boolean released = false;
    while (endings.size() < requested.size()) {
      if (cell.isInterrupted()) {
        stopNow();
        if (System.nanoTime() - cell.interruptedNanos() >= FROZEN_GRACE.toNanos()) {
          killFrozen();
        }
      }
      if (problemNanos == 0) {
        if (isCell && pending().size() < all.size()) {
          informOfDeparted();
          wait(POLL.toMillis());
        } else {
          wait();
        }
        continue;
      }
      long since = System.nanoTime() - problemNanos;
      long killAfter = killAfterNanos();
      long next;
      if (since >= killAfter) {
        killPending();
        wait();
        continue;
      } else if (since < RELEASE_AFTER.toNanos()) {
        next = RELEASE_AFTER.toNanos();
      } else if (since < STOP_AFTER.toNanos()) {
        released = release(released);
        next = STOP_AFTER.toNanos();
      } else {
        released = release(released);
        var _ = sendToPending(new ToRank.Interrupt());
        next = Math.min(killAfter, since + STOP_AGAIN.toNanos());
      }
      wait((next - since) / 1_000_000 + 1);
    }
    return Map.copyOf(endings);
  }

  /// Informs running ranks which others have ended the step and are idle, so that none waits for
  /// them. Nothing is sent before a rank waits.
  private void informOfDeparted() {
    var running = pending().stream().map(this::process).toList();
    if (running.stream().noneMatch(rank -> rank.isWaiting(step))) {
      return;
    }
    int before = departed.size();
    for (var rank : all) {
      if (!running.contains(rank) && !departed.contains(rank.rank())) {
        var answer = idle.computeIfAbsent(rank.rank(), _ -> rank.idle());
        if (answer.isDone()) {
          idle.remove(rank.rank());
          if (answer.join()) {
            departed.add(rank.rank());
          }
        }
      }
    }
    if (departed.size() > before) {
      var message = new ToRank.Departed(step, List.copyOf(departed));
      running.forEach(rank -> rank.send(message));
    }
  }

  /// Continues as if a rank had failed so long ago that the others must be stopped.
  private void stopNow() {
    long stopping = System.nanoTime() - STOP_AFTER.toNanos();
    if (problemNanos == 0) {
      problem = "the cell was interrupted";
      problemNanos = stopping;
    } else {
      problemNanos = Math.min(problemNanos, stopping);
    }
  }

  private long killAfterNanos() {
    long killed = Math.max(startNanos, cell.killedNanos());
    return cell.isKilled()
        ? Math.min(KILL_AFTER.toNanos(), killed - problemNanos + KILL_GRACE.toNanos())
        : KILL_AFTER.toNanos();
  }

  private boolean release(boolean already) {
    return already || sendToPending(new ToRank.Release(problem));
  }

  /// Sends a message to ranks that have not ended. Only a cell waits for other ranks and can be
  /// stopped; otherwise the message would affect the next cell.
  private boolean sendToPending(ToRank message) {
    if (isCell) {
      pending().forEach(rank -> process(rank).send(message));
    }
    return true;
  }

  private void killFrozen() {
    for (int rank : pending()) {
      if (process(rank).isFrozen() && givenUp.add(rank)) {
        process(rank).killFrozen();
      }
    }
  }

  private void killPending() {
    for (int rank : pending()) {
      if (givenUp.add(rank)) {
        process(rank).kill();
      }
    }
  }

  private RankProcess process(int rank) {
    return Objects.requireNonNull(requested.get(rank));
  }

  /// Returns the rank's failure, if it failed.
  public static Optional<RankFailure> failure(Ending ending) {
    return ending instanceof Ending.Answered(FromRank.Failed(var failure))
        ? Optional.of(failure)
        : Optional.empty();
  }

  /// Returns the values of the ranks' snippets, for ranks that returned one.
  public static Map<Integer, MimeBundle> values(Map<Integer, Ending> ended) {
    var values = new TreeMap<Integer, MimeBundle>();
    ended.forEach(
        (rank, ending) -> {
          if (ending instanceof Ending.Answered(FromRank.Value(var bundle))) {
            values.put(rank, bundle);
          }
        });
    return values;
  }

  /// Returns true if this failure was caused by another rank's.
  public static boolean isConsequence(RankFailure failure) {
    return failure.cause() == RankFailure.Cause.STOPPED
        || failure.find(GroupAborted.class).isPresent();
  }
}
