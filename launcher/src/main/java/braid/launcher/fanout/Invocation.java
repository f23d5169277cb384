package braid.launcher.fanout;

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
/// others may wait for it for ever; so they are released after a grace period, then stopped, and in
/// the end killed: an invocation always ends.
public final class Invocation {
  /// How one rank ended the step.
  public sealed interface Ending {
    record Answered(FromRank.Answer answer) implements Ending {}

    /// `givenUp` where it did not end when it was to, and so was killed.
    record Dead(RankDied how, boolean givenUp) implements Ending {}
  }

  /// Ranks often fail alike but not at once: let each tell its own failure.
  private static final Duration RELEASE_AFTER = Duration.ofMillis(500);

  /// A rank that runs on although its group has failed computes something nobody will get.
  private static final Duration STOP_AFTER = Duration.ofSeconds(3);

  /// The stop is told again: a rank that hears it before it has begun has nothing to stop yet.
  private static final Duration STOP_AGAIN = Duration.ofMillis(200);

  static final Duration KILL_AFTER = Duration.ofSeconds(12);

  /// What a rank that was told to stop before may still take once the user insists.
  private static final Duration LAST_CHANCE = Duration.ofSeconds(1);

  /// How long a frozen rank may take to stop once it is to; it cannot, unless it is let go on.
  static final Duration FROZEN_GRACE = Duration.ofSeconds(1);

  /// How often it is looked for ranks that have departed, once a rank waits.
  private static final Duration LOOK_AGAIN = Duration.ofMillis(100);

  private final Map<Integer, RankProcess> asked = new TreeMap<>();
  private final Map<Integer, Ending> endings = new TreeMap<>();
  private final Set<Integer> givenUp = new TreeSet<>();
  private final List<RankProcess> all;
  private final Map<Integer, CompletableFuture<Boolean>> resting = new TreeMap<>();
  private final Set<Integer> departed = new TreeSet<>();
  private final boolean ofCell;
  private final long step;
  private String trouble = "";
  private long troubleNanos;
  private long insistedNanos;
  private long stopNanos;
  private boolean interrupted;
  private boolean disturbed;

  /// Asks the same of every rank of the list; the caller then waits. `all` are the ranks of the
  /// session: those that are not asked cannot come either.
  public Invocation(List<RankProcess> ranks, List<RankProcess> all, ToRank message) {
    this.all = all;
    ofCell = message instanceof ToRank.Invoke;
    step = message instanceof ToRank.Invoke invoke ? invoke.step() : 0;
    ranks.forEach(r -> asked.put(r.rank(), r));
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
          case Ending.Dead(var how, _) -> how.getMessage();
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
    stopWanted(System.nanoTime());
  }

  /// The user has wanted the cell to end since then (`System.nanoTime`): frozen ranks are not
  /// waited for. Others may end the step.
  synchronized void stopWanted(long sinceNanos) {
    if (stopNanos == 0) {
      stopNanos = sinceNanos;
    }
    notifyAll();
  }

  /// The user wanted it before, and it has not ended: whoever does not stop now is killed.
  public synchronized void insist() {
    interrupt();
    if (insistedNanos == 0) {
      insistedNanos = System.nanoTime();
    }
    notifyAll();
  }

  public synchronized boolean wasInterrupted() {
    return interrupted;
  }

  /// Whether ranks were told to stop or to wait no longer: they must [ToRank.Resume], even if they
  /// ended well meanwhile.
  public synchronized boolean disturbed() {
    return disturbed;
  }

  /// The ranks that have not ended yet.
  public synchronized List<Integer> pending() {
    return asked.keySet().stream().filter(rank -> !endings.containsKey(rank)).toList();
  }

  /// Waits until every rank has answered or died.
  public synchronized Map<Integer, Ending> await() throws InterruptedException {
    boolean released = false;
    while (endings.size() < asked.size()) {
      if (interrupted) {
        stopNow();
      }
      if (stopNanos != 0 && System.nanoTime() - stopNanos >= FROZEN_GRACE.toNanos()) {
        killFrozen();
      }
      if (troubleNanos == 0) {
        if (ofCell && pending().size() < all.size()) {
          lookForDeparted();
          wait(LOOK_AGAIN.toMillis());
        } else if (stopNanos != 0) {
          wait(LOOK_AGAIN.toMillis());
        } else {
          wait();
        }
        continue;
      }
      long since = System.nanoTime() - troubleNanos;
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
        var _ = tellPending(new ToRank.Interrupt());
        next = Math.min(killAfter, since + STOP_AGAIN.toNanos());
      }
      wait((next - since) / 1_000_000 + 1);
    }
    return Map.copyOf(endings);
  }

  /// Tells the ranks that still run which of the others have ended the step and are at rest, so
  /// that none waits for those. No rank is bothered with this before one waits.
  private void lookForDeparted() {
    var running = pending().stream().map(this::process).toList();
    if (running.stream().noneMatch(rank -> rank.isWaiting(step))) {
      return;
    }
    int before = departed.size();
    for (var rank : all) {
      if (!running.contains(rank) && !departed.contains(rank.rank())) {
        var answer = resting.computeIfAbsent(rank.rank(), _ -> rank.resting());
        if (answer.isDone()) {
          resting.remove(rank.rank());
          if (answer.join()) {
            departed.add(rank.rank());
          }
        }
      }
    }
    if (departed.size() > before) {
      var told = new ToRank.Departed(step, List.copyOf(departed));
      running.forEach(rank -> rank.tell(told));
    }
  }

  /// From here on it is as if a rank had failed so long ago that the others are to be stopped.
  private void stopNow() {
    long stopping = System.nanoTime() - STOP_AFTER.toNanos();
    if (troubleNanos == 0) {
      trouble = "the cell was interrupted";
      troubleNanos = stopping;
    } else {
      troubleNanos = Math.min(troubleNanos, stopping);
    }
  }

  private long killAfterNanos() {
    return insistedNanos == 0
        ? KILL_AFTER.toNanos()
        : Math.min(KILL_AFTER.toNanos(), insistedNanos - troubleNanos + LAST_CHANCE.toNanos());
  }

  private boolean release(boolean already) {
    return already || tellPending(new ToRank.Release(trouble));
  }

  /// Only a cell waits for other ranks and can be stopped; anything else would take what it is told
  /// into the next cell.
  private boolean tellPending(ToRank message) {
    if (ofCell) {
      disturbed = true;
      pending().forEach(rank -> process(rank).tell(message));
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
    return Objects.requireNonNull(asked.get(rank));
  }

  /// The rank's failure, if it failed.
  public static Optional<RankFailure> failure(Ending ending) {
    return ending instanceof Ending.Answered(FromRank.Failed(var failure))
        ? Optional.of(failure)
        : Optional.empty();
  }

  /// What the ranks' snippets came to, where one did.
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

  /// Whether this failure was only the consequence of another rank's.
  public static boolean isConsequence(RankFailure failure) {
    return failure.kind() == RankFailure.Kind.STOPPED
        || failure.find(GroupAborted.class).isPresent();
  }
}
