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

/// A lane on which a library runs collectives, with the signals that its calls need around them.
final class LibraryLane {
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
      before.add(builder.flag("arrived", calls * ranks));
    }
    if (needs.meetsAfter()) {
      after.add(builder.flag("delivered", calls * ranks));
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

  /// Returns whether a transport's calls need buffers in symmetric memory.
  static boolean needsSymmetric(Transport transport) {
    return transport.memory().isPresent();
  }
}
