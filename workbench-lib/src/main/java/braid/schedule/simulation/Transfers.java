package braid.schedule.simulation;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/// Concurrent copies. Each gets the smaller of two bandwidths: the link's divided by the copies
/// that leave its source, and the link's divided by the copies that arrive at its target. Links
/// inside a host and between hosts are separate.
final class Transfers {
  private final Hardware machine;
  private final EventQueue queue;
  private final List<List<Flow>> sent = new ArrayList<>();
  private final List<List<Flow>> received = new ArrayList<>();
  private final int[] freeEngines;
  private final List<Deque<Flow>> waiting = new ArrayList<>();

  /// Notified when a copy has arrived.
  interface Owner {
    /// @param number the number that the copy was started with
    void arrived(long startNanos, long nanos, int number);
  }

  Transfers(Hardware machine, int ranks, EventQueue queue) {
    this.machine = machine;
    this.queue = queue;
    this.freeEngines = new int[ranks];
    for (int rank = 0; rank < ranks; rank++) {
      freeEngines[rank] = machine.links().engines();
      waiting.add(new ArrayDeque<>());
      for (int kind = 0; kind < 2; kind++) {
        sent.add(new ArrayList<>());
        received.add(new ArrayList<>());
      }
    }
  }

  /// Starts a copy, or queues it until an engine is free.
  ///
  /// @param by rank whose engine it occupies; ignored if it has a limit
  /// @param limit bytes per second of the workers that copy it; infinite for an engine
  void start(
      long now, int by, int from, int to, long bytes, double limit, Owner owner, int number) {
    boolean engine = Double.isInfinite(limit);
    var flow = new Flow(engine ? by : -1, from, to, bytes, limit, owner, number);
    if (engine && freeEngines[by] == 0) {
      waiting.get(by).add(flow);
    } else {
      flow.begin(now);
    }
  }

  private final class Flow implements EventQueue.Target {
    private static final int FLOWING = -1;

    private final int engine;
    private final List<Flow> besideAtSource;
    private final List<Flow> besideAtTarget;
    private final double bandwidth;
    private final long latencyNanos;
    private final double limit;
    private final Owner owner;
    private final int number;
    private double remainingBytes;
    private double bytesPerNano;
    private long startNanos;
    private long lastNanos;
    private int version;

    Flow(int engine, int from, int to, long bytes, double limit, Owner owner, int number) {
      this.engine = engine;
      int kind = machine.sameHost(from, to) ? 0 : 1;
      this.besideAtSource = sent.get(2 * from + kind);
      this.besideAtTarget = received.get(2 * to + kind);
      var link = machine.link(from, to);
      this.bandwidth = link.bytesPerSecond() / 1e9;
      this.latencyNanos = link.latencyNanos();
      this.remainingBytes = bytes;
      this.limit = limit / 1e9;
      this.owner = owner;
      this.number = number;
    }

    void begin(long now) {
      if (engine >= 0) {
        freeEngines[engine]--;
      }
      startNanos = now;
      queue.add(now + latencyNanos, this, FLOWING);
    }

    @Override
    public void at(long nanos, int tag) {
      if (tag == FLOWING) {
        lastNanos = nanos;
        besideAtSource.add(this);
        besideAtTarget.add(this);
        share(nanos);
      } else if (tag == version) {
        version++;
        besideAtSource.remove(this);
        besideAtTarget.remove(this);
        share(nanos);
        if (engine >= 0) {
          freeEngines[engine]++;
          var next = waiting.get(engine).poll();
          if (next != null) {
            next.begin(nanos);
          }
        }
        owner.arrived(startNanos, nanos, number);
      }
    }

    private void share(long now) {
      besideAtSource.forEach(flow -> flow.change(now));
      for (var flow : besideAtTarget) {
        if (!besideAtSource.contains(flow)) {
          flow.change(now);
        }
      }
    }

    private void change(long now) {
      double next =
          Math.min(limit, bandwidth / Math.max(besideAtSource.size(), besideAtTarget.size()));
      if (next == bytesPerNano) {
        return;
      }
      remainingBytes -=
          Double.isInfinite(bytesPerNano) ? remainingBytes : (now - lastNanos) * bytesPerNano;
      lastNanos = now;
      bytesPerNano = next;
      version++;
      queue.add(now + (long) Math.ceil(Math.max(0, remainingBytes / next)), this, version);
    }
  }
}
