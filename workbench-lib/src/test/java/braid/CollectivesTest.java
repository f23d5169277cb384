package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.evidence.ProfileSet;
import braid.internal.context.RankContext;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.DType;
import braid.model.GroupAborted;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Transport;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/// Costs, leftovers and refusals of collectives. Isolated, because it finds this process's threads
/// by name.
@Isolated
class CollectivesTest {
  private static final int CALLS = 1000;

  private static SymmetricTensor tensor(ProcessGroup group, String name, long... shape) {
    return SymmetricTensor.on(group).shape(shape).dtype(DType.FP32).name(name).allocate();
  }

  private static void refused(String message, ThrowingCallable call) {
    assertThatThrownBy(call).isExactlyInstanceOf(BraidException.class).hasMessage(message);
  }

  @Test
  void c5ResultsAreNewSymmetricTensorsFromThePoolAndNoCallMeets() {
    LocalRanks.run(
        3,
        world -> {
          var comm = Collectives.on(world);
          var x = tensor(world, "x", 6, 4);
          oneOfEach(comm, x);
          var before = world.counters();
          for (int i = 0; i < CALLS / 4; i++) {
            x.local().fill(i);
            oneOfEach(comm, x);
            var _ = Collectives.on(world);
          }
          var after = world.counters();
          for (var counter : List.of("meetings", "rendezvous", "buffers allocated")) {
            assertThat(after.get(counter)).as(counter).isEqualTo(before.get(counter));
          }
          assertThat(after.get("buffers reused"))
              .isEqualTo(before.getOrDefault("buffers reused", 0L) + CALLS);
        });
  }

  private static void oneOfEach(Collectives comm, SymmetricTensor x) {
    float value = x.local().get(0, 0);
    try (var all = comm.allGather(x);
        var sum = comm.allReduce(x);
        var part = comm.reduceScatter(x);
        var mixed = comm.allToAll(x)) {
      assertThat(all.shape()).containsExactly(18L, 4L);
      assertThat(sum.shape()).containsExactly(6L, 4L);
      assertThat(part.shape()).containsExactly(2L, 4L);
      assertThat(mixed.shape()).containsExactly(6L, 4L);
      assertThat(all.local().get(17, 3)).isEqualTo(value);
      assertThat(sum.local().get(5, 3)).isEqualTo(3 * value);
      assertThat(part.local().get(1, 3)).isEqualTo(3 * value);
      assertThat(mixed.local().get(5, 3)).isEqualTo(value);
      assertThat(part.kind()).isEqualTo(x.kind());
      assertThat(part.name()).isEqualTo("reduce-scatter of x");
    }
  }

  /// During a transfer that lasts until it is released, the stream's thread copies and the caller's
  /// thread only waits.
  @Test
  void c3NothingIsCopiedOnTheCallersThread() {
    LocalRanks.run(
        2,
        new Link(1, 0),
        world -> {
          var comm = Collectives.on(world);
          var x = tensor(world, "x", 50_000);
          var caller =
              Thread.ofPlatform()
                  .start(
                      () ->
                          assertThatThrownBy(() -> comm.allReduce(x, x))
                              .isInstanceOf(GroupAborted.class));
          var stream = "braid-%d-comm".formatted(world.rank());
          while (!copies(stream) || !frames(caller).contains("Waits")) {
            assertThat(caller.isAlive()).as("the call goes on until its bytes are there").isTrue();
            assertThat(frames(caller)).doesNotContain("CopyEngine");
          }
          world.context().waits().release("the test has seen it");
          caller.join();
        });
  }

  private static boolean copies(String threadName) {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals(threadName))
        .anyMatch(thread -> frames(thread).contains("CopyEngine"));
  }

  private static List<String> frames(Thread thread) {
    return Arrays.stream(thread.getStackTrace())
        .map(StackTraceElement::getClassName)
        .map(name -> name.substring(name.lastIndexOf('.') + 1))
        .toList();
  }

  @Test
  void c6EveryCollectiveOfTheTableIsThere() {
    var rows = Capabilities.hostCollectives();
    assertThat(rows).hasSize(8 * CollectiveWay.values().length * 4);
    assertThat(rows)
        .filteredOn(row -> row.kind() != MemoryKind.NATIVE)
        .allMatch(row -> !row.supported() && !row.note().isEmpty());
    assertThat(rows)
        .filteredOn(row -> row.way() == CollectiveWay.COPY_ENGINE && !row.supported())
        .allMatch(row -> row.note().contains("needs CUDA"));
    LocalRanks.run(
        2,
        world -> {
          var x = tensor(world, "x", 2);
          var y = tensor(world, "y", 4);
          for (var row : rows) {
            if (row.supported()) {
              assertThat(row.engine()).isNotEmpty();
              make(by(Collectives.on(world), row.way()), row.collective(), x, y);
            }
          }
        });
  }

  private static Collectives by(Collectives comm, CollectiveWay way) {
    return way == CollectiveWay.PUSHING ? comm.pushing() : comm.over(way.transport());
  }

  private static void make(
      Collectives comm, Collective collective, SymmetricTensor x, SymmetricTensor y) {
    int rank = x.group().rank();
    switch (collective) {
      case ALL_GATHER -> comm.allGather(x, y);
      case REDUCE_SCATTER -> comm.reduceScatter(y, x);
      case ALL_REDUCE -> comm.allReduce(y, y);
      case ALL_TO_ALL -> comm.allToAll(x).close();
      case BROADCAST -> comm.broadcast(x, 1);
      case SEND, RECEIVE -> {
        if (rank == 0) {
          comm.send(x, 1);
        } else {
          comm.receive(x, 0);
        }
      }
      case BARRIER -> comm.barrier();
    }
  }

  @Test
  void resultsOfResultsHaveNames() {
    LocalRanks.run(
        2,
        world -> {
          var comm = Collectives.on(world);
          var x = tensor(world, "n".repeat(64), 1);
          x.local().fill(1);
          for (int i = 0; i < 5; i++) {
            x = comm.allReduce(x);
          }
          assertThat(x.local().get(0)).isEqualTo(32);
          assertThat(x.name()).startsWith("all-reduce of all-reduce of ").hasSize(64);
        });
  }

  @Test
  void a7AGroupMeetsOnceForAllItsCollectives() {
    LocalRanks.run(
        2,
        world -> {
          var x = tensor(world, "x", 2);
          long before = rendezvous(world);
          var comm = Collectives.on(world);
          long setUp = rendezvous(world) - before;
          assertThat(setUp).isEqualTo(2);
          for (var each : List.of(comm, comm.over(Transport.WORKERS), Collectives.on(world))) {
            each.allReduce(x, x);
          }
          assertThat(rendezvous(world) - before).isEqualTo(setUp);
        });
  }

  private static long rendezvous(ProcessGroup group) {
    return group.counters().getOrDefault("rendezvous", 0L);
  }

  /// The pushing rank copies the data: the root moves the bytes of a broadcast.
  @Test
  void pushingCopiesWhereTheBytesAre() {
    var profiles = new ConcurrentLinkedQueue<Profile>();
    LocalRanks.run(
        3,
        world -> {
          var comm = Collectives.on(world).pushing();
          var x = tensor(world, "x", 64);
          profiles.add(comm.profile(2, c -> c.broadcast(x, 1)));
        });
    assertThat(profiles).hasSize(3);
    for (var profile : profiles) {
      long copied =
          profile.spans().stream()
              .filter(span -> span.stage() == Stage.COPY)
              .mapToLong(Span::bytes)
              .sum();
      assertThat(copied).isEqualTo(profile.place().rank() == 1 ? 2 * 2 * 64 * Float.BYTES : 0);
      assertThat(profile.configuration()).containsEntry("transport", "pushing");
    }
  }

  private final ConcurrentLinkedQueue<RankContext> contexts = new ConcurrentLinkedQueue<>();

  @Test
  void collectivesThatBrokeOffGoOnAfterAResume() {
    var front = new CyclicBarrier(3);
    LocalRanks.run(
        3,
        world -> {
          contexts.add(RankContext.current());
          var comm = Collectives.on(world);
          var x = tensor(world, "x", 6);
          var y = tensor(world, "y", 6);
          for (int epoch = 2; epoch < 5; epoch++) {
            check(comm, x, y, world.rank());
            front.await(240, TimeUnit.SECONDS);
            if (world.rank() == 1) {
              while (contexts.stream().filter(CollectivesTest::waits).count() < 2) {
                Thread.onSpinWait();
              }
              contexts.forEach(each -> each.release("rank 1 failed"));
            } else {
              for (int i = 0; i < epoch; i++) {
                assertThatThrownBy(() -> comm.allReduce(x, x)).isInstanceOf(BraidException.class);
              }
              assertThatThrownBy(() -> comm.allReduce(x, x))
                  .hasMessageStartingWith(
                      "all-reduce in group `world`: an earlier collective failed")
                  .hasMessageEndingWith("call Collectives.on(group) again on every rank");
            }
            front.await(240, TimeUnit.SECONDS);
            RankContext.current().resume(epoch);
          }
          check(Collectives.on(world), x, y, world.rank());
          check(comm, x, y, world.rank());
        });
  }

  private static boolean waits(RankContext context) {
    return context.waits().current().stream()
        .anyMatch(one -> one.contains("signal begun[1] from rank 1 of all-reduce"));
  }

  private static void check(Collectives comm, SymmetricTensor x, SymmetricTensor y, int rank) {
    x.local().fill(1 + rank);
    comm.sendReceive(x, (rank + 1) % 3, y, (rank + 2) % 3);
    comm.allReduce(y, x);
    assertThat(x.local().toFloats()).containsOnly(6);
  }

  @Test
  void c1AnAllGatherAloneIsCopiedByTheCopyEngine() {
    var profiles = new ConcurrentLinkedQueue<Profile>();
    LocalRanks.run(
        2,
        Link.parse("1GB/s,20us"),
        world -> {
          var comm = Collectives.on(world);
          var x = tensor(world, "x", 1 << 18);
          var y = tensor(world, "y", 1 << 19);
          profiles.add(comm.profile(3, c -> c.allGather(x, y)));
        });
    var all = ProfileSet.of(List.copyOf(profiles));
    assertThat(all.iterations()).isEqualTo(3);
    assertThat(all.configuration())
        .containsAllEntriesOf(
            Map.of(
                "pattern", "all-gather",
                "shape", "262144 to 524288",
                "dtype", "fp32",
                "transport", "copy_engine",
                "ranks", "2",
                "memory", "native"));
    for (var profile : profiles) {
      var copies =
          profile.spans().stream()
              .filter(span -> span.stage() == Stage.COPY && span.stream().equals("comm"))
              .toList();
      assertThat(copies).hasSize(3).allSatisfy(span -> assertThat(span.bytes()).isEqualTo(1 << 20));
      // A MiB at 1 GB/s.
      assertThat(profile.iterationNanos())
          .allSatisfy(nanos -> assertThat(nanos).isGreaterThan(1_000_000));
      assertThat(profile.counters()).containsKey("rendezvous");
    }
    assertThat(all.table().rowCount()).isPositive();
    assertThat(all.stages().rowCount()).isEqualTo(2);
  }

  /// Real numbers, whose sum depends on the order in which they are added.
  @Test
  void f9BothAlgorithmsOfAnAllReduceGiveTheSameBits() {
    LocalRanks.run(
        4,
        world -> {
          for (var comm :
              List.of(Collectives.on(world), Collectives.on(world).over(Transport.WORKERS))) {
            // Including more than one chunk of 1 MiB.
            for (long size : new long[] {1, 7, 300_001}) {
              try (var x = tensor(world, "x", size);
                  var one = comm.oneShot().allReduce(real(x));
                  var two = comm.twoShot().allReduce(x);
                  var usual = comm.allReduce(x)) {
                assertThat(one.local().toFloats()).isEqualTo(two.local().toFloats());
                assertThat(one.local().toFloats()).isEqualTo(usual.local().toFloats());
                comm.oneShot().allReduce(x, x);
                assertThat(x.local().toFloats()).isEqualTo(one.local().toFloats());
              }
            }
          }
        });
  }

  private static SymmetricTensor real(SymmetricTensor x) {
    var random = new SplittableRandom(17 + x.group().rank());
    var numbers = new float[(int) x.local().elements()];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = (float) random.nextDouble(-1, 1);
    }
    x.local().copyFrom(numbers);
    return x;
  }

  @Test
  void f9AProfileRecordsTheAlgorithmAndTheWorkers() {
    LocalRanks.run(
        3,
        world -> {
          var comm = Collectives.on(world).over(Transport.WORKERS).workers(2);
          var x = tensor(world, "x", 5);
          var y = tensor(world, "y", 5);
          var one = comm.oneShot().profile(2, c -> c.allReduce(x, y));
          assertThat(one.configuration())
              .containsEntry("algorithm", "one-shot")
              .containsEntry("workers", "2");
          assertThat(fetched(one)).isEqualTo(2 * 2 * 5 * Float.BYTES);
          var both =
              comm.profile(
                  1,
                  c -> {
                    c.allReduce(x, y);
                    c.oneShot().allReduce(x, x);
                  });
          assertThat(both.configuration()).containsEntry("algorithm", "two-shot + one-shot");
          assertThat(comm.profile(1, c -> c.broadcast(x, 0)).configuration())
              .doesNotContainKey("algorithm");
        });
  }

  private static long fetched(Profile profile) {
    return profile.spans().stream()
        .filter(span -> span.stage() == Stage.COPY && span.stream().equals("comm"))
        .mapToLong(Span::bytes)
        .sum();
  }

  @Test
  void aProfileOfSeveralAndOfNone() {
    LocalRanks.run(
        3,
        world -> {
          var comm = Collectives.on(world).over(Transport.WORKERS).workers(2);
          var x = tensor(world, "x", 3);
          var profile =
              comm.profile(
                  2,
                  c -> {
                    c.barrier();
                    if (world.rank() == 1) {
                      c.send(x, 2);
                    } else if (world.rank() == 2) {
                      c.receive(x, 1);
                    }
                    c.broadcast(x, 1);
                  });
          assertThat(profile.configuration())
              .containsEntry("pattern", "barrier + broadcast + send-receive")
              .containsEntry("shape", "3")
              .containsEntry("workers", "2");
          refused(
              "profile measures the collectives that its body calls on its argument, but no rank called"
                  + " any; try profile(50, c -> c.allGather(x, y))",
              () -> comm.profile(1, c -> {}));
        });
  }
}
