package braid.schedule.simulation;

import java.util.ArrayList;
import java.util.List;

/// Compute units that some lanes share. If lanes demand more units than available, each gets a
/// share by weight, and its task takes longer.
final class ComputePool implements EventQueue.Target {
  /// Tolerance, larger than the rounding error of one time.
  private static final double DONE_NANOS = 0.01;

  private final double units;
  private final double besideCopies;
  private final EventQueue queue;
  private final List<Task> tasks = new ArrayList<>();
  private int copies;
  private long lastNanos;
  private int version;

  /// Notified when a task is done.
  interface Owner {
    void computed(long nanos);
  }

  /// Work that occupies units.
  static final class Task {
    private final double demand;
    private final double weight;
    private final boolean copies;
    private final Owner owner;

    /// Remaining time with all demanded units.
    private double remainingNanos;

    private double speed;
    private boolean full;

    private Task(double nanos, double demand, double weight, boolean copies, Owner owner) {
      this.remainingNanos = nanos;
      this.demand = demand;
      this.weight = weight;
      this.copies = copies;
      this.owner = owner;
    }
  }

  /// @param besideCopies time of a computation beside copies ÷ its time alone
  ComputePool(double units, double besideCopies, EventQueue queue) {
    this.units = units;
    this.besideCopies = besideCopies;
    this.queue = queue;
  }

  /// Begins a task.
  ///
  /// @param nanos its time with all demanded units; infinite until [#remove]
  /// @param demand number of units that it demands
  /// @param copies true if it copies, and so is not slowed by copies
  Task add(long now, double nanos, double demand, double weight, boolean copies, Owner owner) {
    advance(now);
    var task = new Task(nanos, demand, weight, copies, owner);
    tasks.add(task);
    share(now);
    return task;
  }

  /// Adds copies in flight, or removes them.
  void copying(long now, int change) {
    advance(now);
    copies += change;
    share(now);
  }

  void remove(long now, Task task) {
    advance(now);
    tasks.remove(task);
    share(now);
  }

  @Override
  public void at(long nanos, int tag) {
    if (tag != version) {
      return;
    }
    advance(nanos);
    var done = tasks.stream().filter(task -> task.remainingNanos <= DONE_NANOS).toList();
    tasks.removeAll(done);
    share(nanos);
    done.forEach(task -> task.owner.computed(nanos));
  }

  private void advance(long now) {
    for (var task : tasks) {
      task.remainingNanos -= (now - lastNanos) * task.speed;
    }
    lastNanos = now;
  }

  /// Assigns speeds: tasks that demand less than their share get their demand, and the others share
  /// the rest.
  private void share(long now) {
    version++;
    double free = units;
    double weights = 0;
    for (var task : tasks) {
      task.full = false;
      weights += task.weight;
    }
    for (boolean changed = true; changed; ) {
      changed = false;
      for (var task : tasks) {
        if (!task.full && task.demand * weights <= free * task.weight) {
          task.full = true;
          task.speed = 1;
          free -= task.demand;
          weights -= task.weight;
          changed = true;
        }
      }
    }
    double soonest = Double.POSITIVE_INFINITY;
    for (var task : tasks) {
      if (!task.full) {
        task.speed = free * task.weight / weights / task.demand;
      }
      if (copies > 0 && !task.copies) {
        task.speed /= besideCopies;
      }
      soonest = Math.min(soonest, task.remainingNanos / task.speed);
    }
    if (soonest < Double.POSITIVE_INFINITY) {
      queue.add(now + (long) Math.ceil(Math.max(0, soonest)), this, version);
    }
  }
}
