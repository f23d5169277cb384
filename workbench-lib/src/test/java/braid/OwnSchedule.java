package braid;

import braid.internal.memory.Counter;
import braid.internal.selftest.WrittenSchedules;
import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.GroupAborted;
import braid.schedule.Buffer;
import braid.schedule.Flag;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import java.util.List;
import java.util.stream.Stream;

/// A hand-written schedule of two ranks, and how tests run schedules.
final class OwnSchedule {
  private OwnSchedule() {}

  /// Returns a schedule of two ranks that gather and multiply in one piece each, with other steps
  /// at one point of rank 1.
  static Schedule pair(GemmSpec spec, Pair.At point, Pair.Instead instead) {
    return new Pair(spec).schedule(point, instead);
  }

  static final class Pair {
    enum At {
      BEGIN,
      OWN,
      WAIT,
      FETCH,
      AFTER,
      MULTIPLY,
      READ,
      END
    }

    interface Instead {
      void at(Pair pair, Program program);
    }

    private final GemmSpec spec;
    private final Schedule.Builder plan;
    final Buffer input;
    final Buffer weight;
    final Buffer output;
    final Buffer all;
    final Flag begun;
    final Flag read;
    final Lane comm;
    final Lane math;

    private Pair(GemmSpec spec) {
      this.spec = spec;
      plan = Schedule.on(spec, 2);
      input = plan.symmetric(Part.INPUT);
      weight = plan.local(Part.WEIGHT);
      output = plan.local(Part.OUTPUT);
      all = plan.local("gathered", spec.dtype(), spec.m(), spec.k());
      begun = plan.flag("begun", 2);
      read = plan.flag("read", 2);
      comm = plan.lane("comm", Lane.Role.COMMUNICATION);
      math = plan.lane("math", Lane.Role.COMPUTE);
    }

    private Schedule schedule(At point, Instead instead) {
      return plan.steps(
          program -> {
            for (var place : At.values()) {
              if (place == point && program.rank() == 1) {
                instead.at(this, program);
              } else {
                step(program, place);
              }
            }
          });
    }

    Slice rows(int rank) {
      return WrittenSchedules.rows(spec, 2, rank);
    }

    private void step(Program p, At place) {
      int me = p.rank();
      int peer = 1 - me;
      switch (place) {
        case BEGIN -> p.signal(comm, begun, peer);
        case OWN -> {
          p.prepare(math, weight.on(me));
          p.gemm(math, 0, input.on(me), weight.on(me), output.on(me, rows(me)));
        }
        case WAIT -> p.await(comm, begun, peer);
        case FETCH -> p.copy(comm, 1, input.on(peer), all.on(me, rows(peer)));
        case AFTER -> p.after(math, 1, comm);
        case MULTIPLY ->
            p.gemm(math, 1, all.on(me, rows(peer)), weight.on(me), output.on(me, rows(peer)));
        case READ -> p.signal(comm, read, peer);
        case END -> p.await(comm, read, peer);
      }
    }
  }

  static Pipeline build(ProcessGroup world, Schedule schedule, boolean replayed) {
    return Pipeline.on(world).schedule(replayed ? schedule.replay() : schedule).build();
  }

  /// Returns the number of plans made and of plans reused.
  static List<Long> plans(ProcessGroup world) {
    return Stream.of(Counter.PLANS_MADE, Counter.PLANS_REUSED)
        .map(counter -> world.counters().getOrDefault(counter.text(), 0L))
        .toList();
  }

  static String refused(Runnable call) {
    try {
      call.run();
      return "";
    } catch (GroupAborted e) {
      throw new AssertionError("a consequence instead of the cause", e);
    } catch (BraidException e) {
      return String.valueOf(e.getMessage());
    }
  }
}
