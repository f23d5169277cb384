package braid.schedule.plan;

import braid.model.Collective;
import braid.model.Transport;
import braid.schedule.Flag;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.List;

/// A lane on which a library runs collectives, with the meetings of all ranks that its calls need
/// before and after them. A rank joins the first meeting when its memory may be written; what a
/// call delivers may be read after the second one.
final class LibraryLane {
  private static final String ARRIVED = "arrived";
  private static final String DELIVERED = "delivered";

  private final Lane lane;
  private final int ranks;

  /// One word per call and rank; absent if calls need no signals before or after them.
  private final List<Flag> before = new ArrayList<>();

  private final List<Flag> after = new ArrayList<>();

  /// @param calls number of calls of an iteration
  LibraryLane(Schedule.Builder builder, Lane lane, int ranks, int calls) {
    this.lane = lane;
    this.ranks = ranks;
    var needs = CollectiveSpec.LibraryNeeds.connected(lane.transport());
    if (needs.meetsBefore()) {
      before.add(builder.flag(ARRIVED, calls * ranks));
    }
    if (needs.meetsAfter()) {
      after.add(builder.flag(DELIVERED, calls * ranks));
    }
  }

  /// Calls a collective of this rank's regions.
  ///
  /// @param number number of the call in an iteration, from 0 on
  void call(Program program, int number, int chunk, Collective collective, Region x, Region y) {
    before.forEach(flag -> meet(program, number, chunk, flag));
    program.call(new Step.LibraryCall(lane, chunk, collective, x, y, 0, false));
    after.forEach(flag -> meet(program, number, chunk, flag));
  }

  /// Waits until all ranks have come to this point of the lane.
  private void meet(Program program, int number, int chunk, Flag flag) {
    int rank = program.rank();
    for (int i = 1; i < ranks; i++) {
      program.signal(lane, chunk, flag, number * ranks + rank, (rank + i) % ranks);
    }
    for (int i = 1; i < ranks; i++) {
      int peer = (rank + i) % ranks;
      program.await(lane, chunk, flag, number * ranks + peer, peer);
    }
  }

  /// Returns the place of the library call behind a meeting that begins at a place; the place
  /// itself if no such meeting begins there.
  static int afterMeeting(List<Step> steps, int place) {
    int after = pass(steps, place, steps.get(place).lane(), ARRIVED);
    return after < steps.size()
            && steps.get(after) instanceof Step.LibraryCall call
            && call.lane().equals(steps.get(place).lane())
        ? after
        : place;
  }

  /// Returns the place behind a step, and behind the meeting after it if it is a library call.
  static int end(List<Step> steps, int place) {
    return steps.get(place) instanceof Step.LibraryCall call
        ? pass(steps, place + 1, call.lane(), DELIVERED)
        : place + 1;
  }

  /// Returns the first place, from one on, that is not in a meeting on a lane.
  private static int pass(List<Step> steps, int place, Lane lane, String flag) {
    int next = place;
    while (next < steps.size()
        && steps.get(next).lane().equals(lane)
        && switch (steps.get(next)) {
          case Step.Signal signal -> signal.flag().name().equals(flag);
          case Step.Wait wait -> wait.flag().name().equals(flag);
          default -> false;
        }) {
      next++;
    }
    return next;
  }

  /// Returns whether a transport's calls need buffers in symmetric memory.
  static boolean needsSymmetric(Transport transport) {
    return transport.memory().isPresent();
  }
}
