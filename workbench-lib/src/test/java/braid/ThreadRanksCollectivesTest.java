package braid;

import static braid.internal.selftest.CollectiveCase.Operation.ALL_GATHER;
import static braid.internal.selftest.CollectiveCase.Operation.ALL_REDUCE;
import static braid.internal.selftest.CollectiveCase.Operation.ALL_REDUCE_IN_PLACE;
import static braid.internal.selftest.CollectiveCase.Operation.ALL_TO_ALL;
import static braid.internal.selftest.CollectiveCase.Operation.BROADCAST;
import static braid.internal.selftest.CollectiveCase.Operation.REDUCE_SCATTER;
import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.CollectiveCase;
import braid.internal.selftest.CollectiveCase.Operation;
import braid.internal.selftest.CollectiveCase.Route;
import braid.internal.selftest.Sweep;
import braid.model.DType;
import braid.model.Place;
import braid.natives.kernels.Integers;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Test;

/// The whole contract on ranks as threads.
class ThreadRanksCollectivesTest extends CollectivesContract {
  private static final int SEQUENCES = 100;
  private static final int CALLS = 8;
  private static final int MAX_HESITATION = 20_000;

  @Override
  void check(int ranks, List<CollectiveCase> cases) {
    LocalRanks.run(ranks, world -> cases.forEach(each -> Contract.hold(each, world)));
  }

  @Test
  void sumsOfSeveralChunks() {
    check(3, CollectiveCase.supported(CollectiveCase.large(), Capabilities.hostCollectives()));
  }

  /// Two groups of one world at once, each with only some of its ranks.
  @Test
  void groupsOfSomeRanks() {
    var all = CollectiveCase.supported(CollectiveCase.table(), Capabilities.hostCollectives());
    var cases =
        Sweep.oneOf(4, all.stream().filter(each -> each.route() != Route.ONE_WORKER).toList());
    LocalRanks.run(
        4,
        world -> {
          var mine = world.rank() % 2 == 0 ? world.subset("even", 0, 2) : world.subset("odd", 1, 3);
          cases.forEach(each -> Contract.hold(each, mine));
        });
  }

  /// A failure prints the seed; `-Dbraid.seed=…` repeats it.
  @Test
  void randomSequencesAreRight() {
    long seed = Long.getLong("braid.seed", ThreadLocalRandom.current().nextLong());
    try {
      for (int ranks = 1; ranks <= 4; ranks++) {
        int size = ranks;
        LocalRanks.run(
            ranks,
            world -> {
              for (int i = 0; i < SEQUENCES / 4; i++) {
                sequence(world, new SplittableRandom(seed + 1000L * size + i));
              }
            });
      }
    } catch (RuntimeException | Error e) {
      throw new AssertionError("with -Dbraid.seed=" + seed + ": " + e.getMessage(), e);
    }
  }

  /// Calls on the same three tensors in random order, at random times, with ring messages and
  /// barriers between them; every rank computes the contents of all ranks' tensors.
  private static void sequence(ProcessGroup group, SplittableRandom random) {
    var dtype = any(List.of(DType.values()), random);
    var comm =
        any(List.of(Route.COPY_ENGINE, Route.ONE_WORKER, Route.TWO_WORKERS), random).of(group);
    var moving = random.nextBoolean() ? comm : Route.PUSHING.of(group);
    int ranks = group.size();
    int rows = 1 + random.nextInt(5);
    try (var small = tensor(group, dtype, rows);
        var a = tensor(group, dtype, (long) rows * ranks);
        var b = tensor(group, dtype, (long) rows * ranks)) {
      var played = new Played(group, dtype, List.of(small, a, b));
      var said = new ArrayList<String>();
      for (int call = 0; call < CALLS; call++) {
        int index = random.nextInt(9);
        int root = random.nextInt(ranks);
        long hesitation =
            new SplittableRandom(random.nextLong() + group.rank()).nextInt(MAX_HESITATION);
        for (long i = 0; i < hesitation; i++) {
          Thread.onSpinWait();
        }
        said.add(index + "@" + root);
        switch (index) {
          case 0 -> {
            moving.allGather(small, a);
            played.collective(ALL_GATHER, root, 0, 1);
          }
          case 1 -> {
            comm.reduceScatter(b, small);
            played.collective(REDUCE_SCATTER, root, 2, 0);
          }
          case 2 -> {
            comm.allReduce(a, b);
            played.collective(ALL_REDUCE, root, 1, 2);
          }
          case 3 -> {
            comm.allReduce(b, b);
            played.collective(ALL_REDUCE_IN_PLACE, root, 2, 2);
          }
          case 4 -> {
            moving.allToAll(b, a);
            played.collective(ALL_TO_ALL, root, 2, 1);
          }
          case 5 -> {
            moving.broadcast(a, root);
            played.collective(BROADCAST, root, 1, 1);
          }
          case 6 -> comm.barrier();
          case 7 -> {
            if (ranks > 1) {
              comm.sendReceive(
                  a, (group.rank() + 1) % ranks, b, (group.rank() + ranks - 1) % ranks);
              played.ring(1, 2);
            }
          }
          default -> {
            try (var sum = comm.allReduce(a)) {
              b.local().copyFrom(sum.local().toFloats());
            }
            played.collective(ALL_REDUCE, root, 1, 2);
          }
        }
        played.check(said);
      }
    }
  }

  private static <T> T any(List<T> values, SplittableRandom random) {
    return values.get(random.nextInt(values.size()));
  }

  private static SymmetricTensor tensor(ProcessGroup group, DType dtype, long rows) {
    return SymmetricTensor.on(group).shape(rows, 3).dtype(dtype).allocate();
  }

  /// Contents of all ranks' tensors by plain loops; this rank's are compared.
  private static final class Played {
    private final ProcessGroup group;
    private final DType dtype;
    private final List<SymmetricTensor> tensors;

    /// By tensor and rank.
    private final List<List<float[]>> values = new ArrayList<>();

    Played(ProcessGroup group, DType dtype, List<SymmetricTensor> tensors) {
      this.group = group;
      this.dtype = dtype;
      this.tensors = tensors;
      for (int t = 0; t < tensors.size(); t++) {
        var local = tensors.get(t).local();
        var ofRanks = new ArrayList<float[]>();
        for (int rank = 0; rank < group.size(); rank++) {
          ofRanks.add(Integers.first(10L * rank + t, (int) local.elements()));
        }
        local.copyFrom(ofRanks.get(group.rank()));
        values.add(ofRanks);
      }
    }

    void collective(Operation operation, int root, int x, int y) {
      var brought = List.copyOf(values.get(x));
      for (int rank = 0; rank < group.size(); rank++) {
        var place = new Place(rank, group.size());
        values
            .get(y)
            .set(rank, CollectiveCase.wanted(operation, dtype, place, root, brought).clone());
      }
    }

    void ring(int x, int y) {
      int ranks = group.size();
      for (int rank = 0; rank < ranks; rank++) {
        values.get(y).set(rank, values.get(x).get((rank + ranks - 1) % ranks).clone());
      }
    }

    void check(List<String> said) {
      for (int t = 0; t < tensors.size(); t++) {
        assertThat(tensors.get(t).local().toFloats())
            .as("%s tensor %d on rank %s after %s", dtype, t, group.place(), said)
            .containsExactly(values.get(t).get(group.rank()));
      }
    }
  }
}
