package braid.schedule.simulation;

import java.util.ArrayList;
import java.util.List;

/// Compute units that some lanes share. Where lanes want more than there are, each gets its share
/// by weight, and what it does takes longer.
final class ComputePool implements EventQueue.Target {
  /// Less than what one rounding of a time leaves.
  private static final double DONE_NANOS = 0.01;

  private final double units;
  private final EventQueue queue;
  private final List<Task> tasks = new ArrayList<>();
  private long lastNanos;
  private int version;

  /// Called when a task is done.
  interface Owner {
    void computed(long nanos);
  }

  /// Something that keeps units busy.
  static final class Task {
    private final double demand;
    private final double weight;
    private final Owner owner;

    /// Nanoseconds that it still takes where it has all that it wants.
    private double left;

    private double speed;
    private boolean served;

    private Task(double nanos, double demand, double weight, Owner owner) {
      this.left = nanos;
      this.demand = demand;
      this.weight = weight;
      this.owner = owner;
    }
  }

  ComputePool(double units, EventQueue queue) {
    this.units = units;
    this.queue = queue;
  }

  /// Begins a task.
  ///
  /// @param nanos that it takes where it has all that it wants; infinite until [#remove]
  /// @param demand units that it wants
  Task add(long now, double nanos, double demand, double weight, Owner owner) {
    advance(now);
    var task = new Task(nanos, demand, weight, owner);
    tasks.add(task);
    share(now);
    return task;
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
    var done = tasks.stream().filter(task -> task.left <= DONE_NANOS).toList();
    tasks.removeAll(done);
    share(nanos);
    done.forEach(task -> task.owner.computed(nanos));
  }

  private void advance(long now) {
    for (var task : tasks) {
      task.left -= (now - lastNanos) * task.speed;
    }
    lastNanos = now;
  }

  /// Gives tasks their speeds: whoever wants less than its share gets what it wants, and the others
  /// share the rest.
  private void share(long now) {
    version++;
    double free = units;
    double weights = 0;
    for (var task : tasks) {
      task.served = false;
      weights += task.weight;
    }
    for (boolean changed = true; changed; ) {
      changed = false;
      for (var task : tasks) {
        if (!task.served && task.demand * weights <= free * task.weight) {
          task.served = true;
          task.speed = 1;
          free -= task.demand;
          weights -= task.weight;
          changed = true;
        }
      }
    }
    double soonest = Double.POSITIVE_INFINITY;
    for (var task : tasks) {
      if (!task.served) {
        task.speed = free * task.weight / weights / task.demand;
      }
      soonest = Math.min(soonest, task.left / task.speed);
    }
    if (soonest < Double.POSITIVE_INFINITY) {
      queue.add(now + (long) Math.ceil(Math.max(0, soonest)), this, version);
    }
  }
}
