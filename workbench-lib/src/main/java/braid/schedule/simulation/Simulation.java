package braid.schedule.simulation;

import braid.model.BraidException;
import braid.model.Span;
import braid.model.Stage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Simulates all ranks' operations on a machine by discrete events. Deterministic: the same
/// operations return the same times, to the nanosecond.
///
/// Lanes process marks, signals and waits immediately, because these depend on known times; only
/// operations on shared resources (compute units, links) go through the event queue.
final class Simulation {
  private static final long NEVER = -1;
  private static final int NONE = -1;

  /// The resource use of an operation.
  ///
  /// @param units number of compute units that it demands
  /// @param nanos its time with these units
  public record Work(Stage stage, int units, double nanos, long bytes, long flops) {}

  /// A lane of every rank.
  ///
  /// @param workers number of compute units that copy; 0 for copy engines
  public record LaneKind(String name, boolean yielding, int workers) {}

  /// The input of a simulation.
  ///
  /// @param words number of signal words per rank
  /// @param operations by rank
  public record Input(
      List<LaneKind> lanes, List<Work> work, int words, List<Operations> operations) {}

  /// The result of one rank.
  public record RankResult(List<Long> startNanos, List<Long> iterationNanos, List<Span> spans) {}

  /// Builds the exception of a run that cannot continue.
  @FunctionalInterface
  public interface Halt {
    /// @param step the number of the step on its rank
    /// @param why the reason that the step never ends
    BraidException at(int rank, int lane, int step, String why);
  }

  private final Hardware machine;
  private final Input input;
  private final Halt halt;
  private final int iterations;
  private final boolean inFlight;
  private final EventQueue queue = new EventQueue();
  private final Transfers transfers;
  private final List<ComputePool> pools = new ArrayList<>();
  private final List<Rank> ranks = new ArrayList<>();

  /// @param inFlight true if the host enqueues an iteration while the one before runs; it begins on
  ///   the device when that one has ended on all lanes of the rank
  public Simulation(Hardware machine, Input input, int iterations, boolean inFlight, Halt halt) {
    this.machine = machine;
    this.input = input;
    this.iterations = iterations;
    this.inFlight = inFlight;
    this.halt = halt;
    int count = input.operations().size();
    this.transfers = new Transfers(machine, count, queue);
    int perHost = machine.ranksPerHost();
    int poolsPerHost = Math.ceilDiv(perHost, machine.compute().sharers());
    for (int pool = 0; pool < Math.ceilDiv(count, perHost) * poolsPerHost; pool++) {
      pools.add(
          new ComputePool(machine.compute().units(), machine.compute().besideCopies(), queue));
    }
    for (int rank = 0; rank < count; rank++) {
      int pool = rank / perHost * poolsPerHost + rank % perHost % poolsPerHost;
      ranks.add(new Rank(rank, input.operations().get(rank), pools.get(pool)));
    }
  }

  /// Runs all iterations of all ranks.
  public List<RankResult> run() {
    ranks.forEach(rank -> rank.begin(0));
    while (!queue.isEmpty()) {
      queue.next();
    }
    if (ranks.stream().anyMatch(rank -> rank.iteration < iterations)) {
      throw halted();
    }
    return ranks.stream()
        .map(rank -> new RankResult(rank.beginNanos, rank.iterationNanos, rank.spans))
        .toList();
  }

  /// Returns the exception for the first lane that waits for a missing step, or else for the first
  /// lane in a cycle of waits.
  private BraidException halted() {
    Set<Long> coming = new HashSet<>();
    for (var rank : ranks) {
      for (var lane : rank.lanes) {
        for (int at = lane.at; at < lane.operations.count; at++) {
          if (lane.operations.kinds[at] == Operations.SIGNAL) {
            coming.add(key(lane.operations.others[at], lane.operations.subjects[at]));
          } else if (lane.operations.kinds[at] == Operations.MARK) {
            coming.add(-1 - key(rank.number, lane.operations.others[at]));
          }
        }
      }
    }
    @Nullable Lane first = null;
    for (var rank : ranks) {
      for (var lane : rank.lanes) {
        if (lane.at == lane.operations.count) {
          continue;
        }
        boolean word = lane.operations.kinds[lane.at] == Operations.WAIT;
        long key =
            word
                ? key(rank.number, lane.operations.subjects[lane.at])
                : -1 - key(rank.number, lane.operations.others[lane.at]);
        if (!coming.contains(key)) {
          return halt.at(
              rank.number,
              lane.index,
              lane.operations.steps[lane.at],
              word
                  ? "no rank raises it in iteration %d; let that rank signal it"
                      .formatted(rank.iteration)
                  : "no lane sets it; set it on the lane that it waits for");
        }
        first = first == null ? lane : first;
      }
    }
    if (first == null) {
      throw new IllegalStateException("a rank has not ended but none of its lanes waits");
    }
    return halt.at(
        first.rank.number,
        first.index,
        first.operations.steps[first.at],
        "deadlock: the lanes that it waits for also wait for it; signal or mark before waiting");
  }

  private static long key(int rank, int number) {
    return ((long) rank << Integer.SIZE) | number;
  }

  /// One rank.
  private final class Rank {
    private final int number;
    private final Operations operations;
    private final ComputePool pool;
    private final Lane[] lanes;

    /// Times at which words were raised, for even and odd iterations, because a peer may be one
    /// ahead.
    private final long[][] words = new long[2][input.words()];

    /// First lane that waits for each word; lanes link to the next.
    private final int[] parkedOnWord = new int[input.words()];

    private final long[] marks;
    private final int[] parkedOnMark;

    /// Raised words of peers that are further ahead: iteration, word, time.
    private final List<long[]> early = new ArrayList<>();

    private final List<Long> beginNanos = new ArrayList<>();
    private final List<Long> iterationNanos = new ArrayList<>();
    private final List<Span> spans = new ArrayList<>();
    private int iteration;
    private long startNanos;
    private long endNanos;

    /// Time at which the host begins to enqueue the iteration.
    private long hostNanos;

    /// Time at which the iteration before ended.
    private long earlierEndNanos;

    private int lanesLeft;

    /// Time at which the link is free, if copies pass it in order.
    private long linkFreeNanos;

    Rank(int number, Operations operations, ComputePool pool) {
      this.number = number;
      this.operations = operations;
      this.pool = pool;
      this.lanes = new Lane[input.lanes().size()];
      for (int lane = 0; lane < lanes.length; lane++) {
        lanes[lane] = new Lane(this, lane);
      }
      this.marks = new long[operations.marks()];
      this.parkedOnMark = new int[operations.marks()];
      Arrays.fill(words[0], NEVER);
      Arrays.fill(words[1], NEVER);
      Arrays.fill(parkedOnWord, NONE);
    }

    void begin(long now) {
      if (inFlight && iteration > 0) {
        // Two iterations are in flight at most.
        hostNanos = Math.max(hostNanos + operations.launchedNanos(), earlierEndNanos);
      } else {
        hostNanos = now;
      }
      earlierEndNanos = now;
      startNanos = now;
      beginNanos.add(now);
      endNanos = Math.max(now, hostNanos + operations.launchedNanos());
      lanesLeft = lanes.length;
      Arrays.fill(marks, NEVER);
      Arrays.fill(parkedOnMark, NONE);
      for (var lane : lanes) {
        lane.at = 0;
        lane.nanos = now;
        lane.readyNanos = now;
        queue.add(now, lane, Lane.ADVANCE);
      }
      if (lanes.length == 0) {
        end(now);
      }
    }

    void ended(long nanos) {
      endNanos = Math.max(endNanos, nanos);
      if (--lanesLeft == 0) {
        end(endNanos);
      }
    }

    private void end(long lastNanos) {
      long end = inFlight ? lastNanos : lastNanos + machine.costs().synchronize();
      iterationNanos.add(end - startNanos);
      Arrays.fill(words[iteration % 2], NEVER);
      iteration++;
      var dueNow = early.stream().filter(each -> each[0] <= iteration + 1).toList();
      early.removeAll(dueNow);
      dueNow.forEach(each -> raise((int) each[0], (int) each[1], each[2]));
      if (iteration < iterations) {
        begin(end);
      }
    }

    /// Raises a word of this rank; waiting lanes see it at `nanos`.
    void raise(int ofIteration, int word, long nanos) {
      if (ofIteration > iteration + 1) {
        early.add(new long[] {ofIteration, word, nanos});
      } else if (ofIteration >= iteration) {
        var raised = words[ofIteration % 2];
        if (raised[word] == NEVER || raised[word] > nanos) {
          raised[word] = nanos;
        }
        if (ofIteration == iteration) {
          wake(parkedOnWord, word, nanos);
        }
      }
    }

    void reached(int mark, long nanos) {
      marks[mark] = nanos;
      wake(parkedOnMark, mark, nanos + machine.costs().event());
    }

    private void wake(int[] parked, int on, long nanos) {
      for (int index = parked[on]; index != NONE; ) {
        var lane = lanes[index];
        index = lane.nextParked;
        queue.add(Math.max(nanos, lane.nanos), lane, Lane.ADVANCE);
      }
      parked[on] = NONE;
    }
  }

  /// One lane of one rank.
  private final class Lane implements EventQueue.Target, ComputePool.Owner, Transfers.Owner {
    static final int ADVANCE = 0;
    private static final int START = 1;
    private static final int COPIED = 2;

    private final Rank rank;
    private final int index;
    private final LaneKind kind;
    private final Operations.OfLane operations;
    private final double weight;
    private int at;

    /// The lane's own time: that of its next event, or later.
    private long nanos;

    /// Time at which the lane would have been ready without oversleeping.
    private long readyNanos;

    private long beganNanos;
    private long deadlineNanos;
    private int copiesLeft;
    private int nextParked;
    private ComputePool.@Nullable Task occupied;

    Lane(Rank rank, int index) {
      this.rank = rank;
      this.index = index;
      this.kind = input.lanes().get(index);
      this.operations = rank.operations.lanes[index];
      this.weight = kind.yielding() ? machine.compute().yieldingShare() : 1;
    }

    @Override
    public void at(long now, int tag) {
      switch (tag) {
        case START -> start(now);
        case COPIED -> {
          release(now);
          keep(beganNanos, now, Stage.COPY, at);
          go(at + 1, now, deadlineNanos);
          advance(now);
        }
        default -> advance(now);
      }
    }

    private void go(int to, long now, long ready) {
      at = to;
      nanos = now;
      readyNanos = ready;
    }

    /// Advances until an operation has to wait for an event.
    private void advance(long now) {
      var costs = machine.costs();
      while (at < operations.count) {
        long enqueued = Math.max(nanos, rank.hostNanos + operations.launched[at]);
        int other = operations.others[at];
        int subject = operations.subjects[at];
        switch (operations.kinds[at]) {
          case Operations.MARK -> {
            rank.reached(other, enqueued);
            go(at + 1, enqueued, readyNanos);
          }
          case Operations.AFTER -> {
            long marked = rank.marks[other];
            if (marked == NEVER) {
              park(rank.parkedOnMark, other, enqueued);
              return;
            }
            passed(enqueued, marked <= enqueued ? enqueued : marked + costs.event());
          }
          case Operations.SIGNAL -> {
            long raised = enqueued + costs.signal();
            if (costs.signal() > 0) {
              keep(enqueued, raised, Stage.SIGNAL, at);
            }
            boolean inside = machine.sameHost(rank.number, other);
            ranks
                .get(other)
                .raise(
                    rank.iteration,
                    subject,
                    raised + (inside ? costs.signalInside() : costs.signalBetween()));
            go(at + 1, raised, readyNanos);
          }
          case Operations.WAIT -> {
            long raised = rank.words[rank.iteration % 2][subject];
            if (raised == NEVER) {
              park(rank.parkedOnWord, subject, enqueued);
              return;
            }
            passed(enqueued, Math.max(enqueued, raised));
          }
          default -> {
            long begin = enqueued + (operations.joined[at] ? 0 : costs.step());
            if (begin > now) {
              queue.add(begin, this, START);
            } else {
              start(now);
            }
            return;
          }
        }
      }
      at = operations.count;
      rank.ended(nanos);
    }

    private void park(int[] parked, int on, long enqueued) {
      nanos = enqueued;
      nextParked = parked[on];
      parked[on] = index;
    }

    private void passed(long from, long to) {
      if (to > from) {
        keep(from, to, Stage.WAIT, at);
      }
      go(at + 1, to, to > from ? to : readyNanos);
    }

    private void start(long now) {
      beganNanos = now;
      var work = input.work().get(operations.subjects[at]);
      if (operations.kinds[at] == Operations.COMPUTE) {
        rank.pool.add(now, work.nanos(), work.units(), weight, false, this);
      } else if (machine.links().serial()) {
        long given = rank.hostNanos + operations.launched[at];
        long nanosOfLink = machine.link(source(at), target(at)).nanos(work.bytes());
        rank.linkFreeNanos =
            Math.max(rank.linkFreeNanos, Math.max(given, readyNanos)) + nanosOfLink;
        deadlineNanos = rank.linkFreeNanos;
        int movers = Math.max(1, kind.workers());
        double perCore = machine.links().bytesPerCore() / 1e9;
        rank.pool.copying(now, 1);
        rank.pool.add(now, work.bytes() / perCore / movers, movers, weight, true, this);
      } else {
        startTogether(now);
      }
    }

    /// Starts this copy and those that start together with it.
    private void startTogether(long now) {
      int end = at + 1;
      while (end < operations.count && operations.kinds[end] == Operations.COPY_TOO) {
        end++;
      }
      copiesLeft = end - at;
      double limit = Double.POSITIVE_INFINITY;
      if (kind.workers() > 0) {
        limit = kind.workers() * machine.links().bytesPerWorker() / copiesLeft;
        occupied = rank.pool.add(now, Double.POSITIVE_INFINITY, kind.workers(), weight, true, this);
      }
      rank.pool.copying(now, copiesLeft);
      for (int copy = at; copy < end; copy++) {
        transfers.start(
            now,
            rank.number,
            source(copy),
            target(copy),
            input.work().get(operations.subjects[copy]).bytes(),
            limit,
            this,
            copy);
      }
    }

    private int source(int copy) {
      int other = operations.others[copy];
      return other % 2 == 1 ? rank.number : other / 2;
    }

    private int target(int copy) {
      int other = operations.others[copy];
      return other % 2 == 1 ? other / 2 : rank.number;
    }

    @Override
    public void computed(long now) {
      if (operations.kinds[at] == Operations.COMPUTE) {
        keep(beganNanos, now, input.work().get(operations.subjects[at]).stage(), at);
        go(at + 1, now, now);
        advance(now);
        return;
      }
      rank.pool.copying(now, -1);
      long end = now;
      if (deadlineNanos > now && kind.workers() > 0) {
        // Workers occupy their units until the link is done.
        occupied = rank.pool.add(now, Double.POSITIVE_INFINITY, kind.workers(), weight, true, this);
        end = deadlineNanos;
      } else if (deadlineNanos > now) {
        end = deadlineNanos + machine.costs().oversleep();
      }
      queue.add(end, this, COPIED);
    }

    @Override
    public void arrived(long start, long now, int copy) {
      keep(start, now, Stage.COPY, copy);
      rank.pool.copying(now, -1);
      if (--copiesLeft > 0) {
        return;
      }
      release(now);
      int next = at + 1;
      while (next < operations.count && operations.kinds[next] == Operations.COPY_TOO) {
        next++;
      }
      go(next, now, now);
      advance(now);
    }

    private void release(long now) {
      var task = occupied;
      occupied = null;
      if (task != null) {
        rank.pool.remove(now, task);
      }
    }

    private void keep(long from, long to, Stage stage, int operation) {
      boolean works = operations.kinds[operation] <= Operations.COPY_TOO;
      var work = works ? input.work().get(operations.subjects[operation]) : null;
      rank.spans.add(
          new Span(
              rank.iteration,
              operations.chunks[operation],
              stage,
              kind.name(),
              from,
              to,
              work == null ? 0 : work.bytes(),
              work == null ? 0 : work.flops()));
    }
  }
}
