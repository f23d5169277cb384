package braid;

import braid.model.Profile;
import braid.model.Timing;
import braid.model.Verification;
import braid.model.VerificationFailed;
import braid.schedule.Schedule;

/// A pipeline, an attention or the backward pass of an attention. It is built once and runs many
/// times, alone or as a link of a [Chain]. Two links of a chain pass data through a tensor of the
/// caller that is bound to both. All ranks of the group build, run and measure a link together.
public abstract sealed class ChainLink implements AutoCloseable
    permits Pipeline, Attention, AttentionGradient {
  final PlanLease lease;

  ChainLink(PlanLease lease) {
    this.lease = lease;
  }

  public final ProcessGroup group() {
    return lease.group();
  }

  /// Returns the schedule: the steps of every rank.
  public final Schedule schedule() {
    return lease.plan().schedule();
  }

  /// Runs one iteration and waits for its end on this rank. Then the results are in this rank's
  /// memory, and no other rank accesses this memory for the iteration any more.
  public final void run() {
    lease.run(0);
  }

  /// Runs the iterations and returns the nanoseconds of each on this rank, in the backend's default
  /// form: [Timing#BACK_TO_BACK] on GPUs, [Timing#LATENCY] on the host.
  public final long[] time(int iterations) {
    return time(iterations, group().context().backend().timing());
  }

  /// Runs the iterations and returns the nanoseconds of each on this rank, in the given form.
  public final long[] time(int iterations, Timing form) {
    return lease.time(iterations, form);
  }

  /// Runs the iterations and returns the launch overhead of each: the nanoseconds that this rank's
  /// thread took to enqueue it. An iteration cannot be shorter than that, however fast its work is.
  public final long[] timeEnqueuing(int iterations) {
    return lease.timeEnqueuing(iterations);
  }

  /// Runs the iterations one at a time and returns this rank's spans on the clock of the group's
  /// rank 0. The front receives the profile too. Some more iterations run unprofiled before and
  /// after these, so that the profile can report the cost of profiling.
  public final Profile profile(int iterations) {
    return lease.profile(iterations);
  }

  /// Runs once and compares the results with a reference.
  ///
  /// @return what was compared on all ranks
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  public abstract Verification verify();

  final void checkOpen() {
    lease.checkOpen();
  }

  /// Closes this link; its views become invalid. The plan is kept until the group is closed, for
  /// the next link with the same problem and tuning. Closing twice is harmless, and no rank waits
  /// for another.
  @Override
  public final void close() {
    group().disown(this);
    lease.close();
  }

  @Override
  public final String toString() {
    return lease.toString();
  }
}
