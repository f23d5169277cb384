package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.GroupAborted;
import braid.model.MemoryKind;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Requirements on symmetric memory, row by row (A1 to A9, and C4 of pooled buffers), as far as the
/// host backend can show them.
class SeedsATest {
  private static SymmetricTensor allocate(ProcessGroup group, String name, long... shape) {
    return SymmetricTensor.on(group).shape(shape).name(name).allocate();
  }

  private static long count(ProcessGroup group, String counter) {
    return group.counters().getOrDefault(counter, -1L);
  }

  @ParameterizedTest
  @EnumSource(
      value = MemoryKind.class,
      names = {"AUTO", "NATIVE"})
  void a1TheTensorIsTheSameWhateverItIsMadeOf(MemoryKind kind) {
    LocalRanks.run(
        3,
        world -> {
          try (var x = SymmetricTensor.on(world).shape(2).memory(kind).allocate()) {
            x.local().fill(world.rank());
            world.barrier();
            assertThat(x.all().toFloats()).containsExactly(0, 0, 1, 1, 2, 2);
            assertThat(x.on(2).get(1)).isEqualTo(2);
            assertThat(x.kind()).isEqualTo(MemoryKind.NATIVE);
          }
        });
  }

  @Test
  void a2AnUnknownKindIsAnErrorThatListsTheKnown() {
    assertThatThrownBy(() -> MemoryKind.parse("nvshmen"))
        .hasMessage(
            "a memory kind must be one of auto, native, ipc, nccl, nvshmem but was nvshmen");
  }

  @ParameterizedTest
  @EnumSource(
      value = MemoryKind.class,
      names = {"IPC", "NCCL", "NVSHMEM"})
  void a3AKindThatCannotBeHadIsRefusedByItsOwnName(MemoryKind kind) {
    LocalRanks.run(
        1,
        world ->
            assertThatThrownBy(() -> SymmetricTensor.on(world).shape(1).memory(kind).allocate())
                .hasMessage(
                    "memory kind %s needs CUDA but the backend is host; use native or auto"
                        .formatted(kind)));
  }

  @Test
  void a4AKindThatIsRefusedDoesNotBindTheProcess() {
    LocalRanks.run(
        2,
        world -> {
          var nccl = SymmetricTensor.on(world).shape(4).memory(MemoryKind.NCCL);
          assertThatThrownBy(nccl::allocate).hasMessageStartingWith("memory kind nccl needs CUDA");
          try (var first = allocate(world, "first", 4)) {
            assertThatThrownBy(nccl::allocate)
                .hasMessageStartingWith("memory kind nccl needs CUDA");
            try (var second =
                SymmetricTensor.on(world).shape(4).memory(MemoryKind.NATIVE).allocate()) {
              assertThat(second.kind()).isEqualTo(first.kind());
            }
          }
        });
  }

  @Test
  void a5AMulticastIsWrittenToEveryRank() {
    LocalRanks.run(
        4,
        world -> {
          try (var x = allocate(world, "x", 8)) {
            if (world.rank() == 2) {
              x.multicast().fillIntegers(7);
            }
            world.barrier();
            var expected = x.on(2).toFloats();
            for (int rank = 0; rank < world.size(); rank++) {
              assertThat(x.on(rank).toFloats()).containsExactly(expected);
            }
          }
        });
  }

  @Test
  void a5AShapeWithoutDimensionsIsRefused() {
    LocalRanks.run(
        1,
        world ->
            assertThatThrownBy(() -> allocate(world, "x"))
                .hasMessage(
                    "shape needs 1 or more sizes but has none; call shape(1) for one number"));
  }

  @Test
  void a6AGroupOfSomeRanksHasTensorsOfItsOwn() {
    LocalRanks.run(
        3,
        world -> {
          var pair = world.subset("pair", 2, 0);
          if (!pair.isMember()) {
            assertThatThrownBy(() -> allocate(pair, "x", 2))
                .hasMessage(
                    "group `pair` has ranks 0, 2 but this is rank 1; use it on its members only");
            return;
          }
          assertThat(world.subset("pair", 0, 2)).isSameAs(pair);
          try (var x = allocate(pair, "x", 1)) {
            x.local().fill(world.rank());
            pair.barrier();
            assertThat(x.all().toFloats()).containsExactly(0, 2);
          }
        });
  }

  @Test
  void a6ClosingAGroupUnregistersEveryNameAndEndsWhatWasMadeOnIt() {
    LocalRanks.run(
        2,
        world -> {
          var registry = GroupRegistry.current();
          var pair = world.subset("pair", 0, 1);
          var alias = pair.subset("inner", 1, 0);
          var x = allocate(alias, "x", 2);
          var view = x.local();
          assertThat(registry.names()).containsExactlyInAnyOrder("world", "pair", "pair.inner");
          pair.close();
          assertThat(registry.names()).containsExactly("world");
          var closed =
              "symmetric tensor `x` was closed with its group `pair.inner`; get the group and allocate"
                  + " it again";
          assertThatThrownBy(x::local).hasMessage(closed);
          assertThatThrownBy(() -> view.get(0)).hasMessage(closed);
          // The next group of that name is new and independent.
          try (var successor = world.subset("pair", 0, 1)) {
            var y = allocate(successor, "x", 2);
            assertThat(y.local().toFloats()).containsOnly(0);
            assertThat(count(successor, "buffers allocated")).isEqualTo(1);
          }
        });
  }

  @Test
  void a6GroupsOfOneNameOverOtherRanksDoNotMeet() {
    LocalRanks.run(
        3,
        world -> {
          // Rank 0 has used the name before, rank 2 has not.
          if (world.rank() < 2) {
            try (var pair = world.subset("pair", 0, 1)) {
              allocate(pair, "x", 4).local().fill(1);
              pair.barrier();
            }
          }
          if (world.rank() != 1) {
            try (var pair = world.subset("pair", 0, 2)) {
              assertThat(allocate(pair, "x", 4).local().toFloats()).containsOnly(0);
              assertThat(pair.gather((long) world.rank())).containsExactly(0, 2);
            }
          }
        });
  }

  @Test
  void a7NewMemoryMeetsOnceAndAllElseNever() {
    LocalRanks.run(
        3,
        world -> {
          // The group's first allocation also creates the board of its calls.
          allocate(world, "first", 1).close();
          assertThat(world.counters())
              .containsEntry("rendezvous", 2L)
              .containsEntry("meetings", 2L);

          try (var x = allocate(world, "x", 16)) {
            assertThat(count(world, "rendezvous")).isEqualTo(3);
            assertThat(count(world, "meetings")).isEqualTo(3);
            x.local().fill(1);
            x.on(1).get(0);
            x.all().get(2, 15);
            x.multicast();
          }
          for (int i = 0; i < 10; i++) {
            allocate(world, "y", 16).close();
          }
          assertThat(world.counters())
              .containsEntry("rendezvous", 3L)
              .containsEntry("meetings", 3L)
              .containsEntry("buffers allocated", 2L)
              .containsEntry("bytes allocated", 4L + 64)
              .containsEntry("buffers reused", 10L);
        });
  }

  @Test
  void a7RanksThatCallADifferentNumberOfTimesAreToldAndDoNotHang() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      for (int i = 0; i <= world.rank(); i++) {
                        allocate(world, "x", 4).close();
                      }
                      world.barrier();
                    }))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "all ranks of a group must make the same calls in the same order but rank 0 called"
                + " barrier in group `world` where rank 1 called allocate `x` in group `world`");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void a8AGroupOfOneRankNeedsNobody(int ranks) {
    LocalRanks.run(
        ranks,
        world -> {
          var alone = world.subset("alone" + world.rank(), world.rank());
          for (int i = 0; i < 3; i++) {
            try (var x = allocate(alone, "x", 3)) {
              assertThat(x.local().toFloats()).containsOnly(0);
              x.multicast().fill(5);
              assertThat(x.all().toFloats()).containsExactly(5, 5, 5);
            }
          }
          assertThat(count(alone, "buffers reused")).isEqualTo(2);
        });
  }

  @Test
  void a9WhatFailsOnAllRanksIsUndoneAndCanBeRepeated() {
    LocalRanks.run(
        3,
        world -> {
          for (int i = 0; i < 3; i++) {
            assertThatThrownBy(() -> allocate(world, "x", 1L << 45))
                .hasMessageMatching(
                    "allocate `x` 35184372088832 fp32 native needs 140737488355328 bytes per rank in"
                        + " /dev/shm, where [0-9]+ are free, and failed \\(rank 0: no room; rank 1:"
                        + " no room; rank 2: no room\\); close what is not needed");
            try (var x = allocate(world, "x", 8)) {
              x.local().fill(1);
              world.barrier();
              assertThat(x.all().toFloats()).containsOnly(1);
            }
          }
        });
  }

  @Test
  void a9AShapeThatRanksDisagreeAboutIsNamedRankByRankAndCanBeRepeated() {
    LocalRanks.run(
        4,
        world -> {
          assertThatThrownBy(() -> allocate(world, "x", 2, world.rank() == 2 ? 4 : 3))
              .hasMessage(
                  "allocate `x` in group `world`: ranks must agree but ranks 0, 1, 3 have 2x3 fp32"
                      + " native, rank 2 has 2x4 fp32 native; pass the same value on every rank");
          try (var x = allocate(world, "x", 2, 3)) {
            assertThat(x.local().toFloats()).containsOnly(0);
          }
        });
  }

  @Test
  void c4MemoryIsUsedAgainZeroedAndOnlyWhenAllHaveClosedIt() {
    LocalRanks.run(
        4,
        world -> {
          for (int round = 1; round <= 50; round++) {
            try (var x = allocate(world, "x", 1000)) {
              assertThat(x.all().toFloats()).containsOnly(0);
              // All ranks must have looked before any continues.
              world.barrier();
              x.local().fill(round);
              world.barrier();
              // No rank waits after this: fast ranks close memory that slow ones still read.
              assertThat(x.on((world.rank() + round) % world.size()).toFloats())
                  .containsOnly(round);
            }
          }
          assertThat(count(world, "buffers allocated")).isEqualTo(1);
          assertThat(count(world, "buffers reused")).isEqualTo(49);
        });
  }

  @Test
  void c4AClosedTensorsViewNeverShowsTheNextOnesNumbers() {
    LocalRanks.run(
        2,
        world -> {
          var x = allocate(world, "x", 4);
          var view = x.local();
          x.close();
          try (var y = allocate(world, "y", 4)) {
            y.local().fill(3);
            assertThat(count(world, "buffers reused")).isEqualTo(1);
            assertThatThrownBy(() -> view.get(0))
                .hasMessage("symmetric tensor `x` is closed; allocate it again");
            x.close();
            assertThat(y.local().toFloats()).containsOnly(3);
          }
        });
  }

  @Test
  void c4TensorsClosedInAnotherOrderAreToldAndDoNotHang() {
    var failures = new ConcurrentLinkedQueue<String>();
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      var x = allocate(world, "x", 4);
                      if (world.rank() == 0) {
                        x.close();
                      }
                      try {
                        allocate(world, "y", 4).close();
                      } catch (GroupAborted e) {
                        throw e;
                      } catch (BraidException e) {
                        failures.add(e.getMessage());
                        throw e;
                      }
                    }))
        .isInstanceOf(BraidException.class);
    assertThat(failures)
        .isNotEmpty()
        .containsOnly(
            "allocate `y` in group `world`: tensors must be closed in the same order on every rank"
                + " but rank 0 has pooled memory 0, rank 1 has new memory 1; close the same"
                + " ones before it");
  }

  @Test
  void c4ManyTensorsOfManySizesComeFromThePoolInOneOrder() {
    LocalRanks.run(
        3,
        world -> {
          for (int round = 0; round < 5; round++) {
            var tensors =
                IntStream.range(0, 40).mapToObj(i -> allocate(world, "t" + i, 1 + i % 7)).toList();
            tensors.forEach(each -> each.local().fill(world.rank()));
            world.barrier();
            for (var each : tensors) {
              assertThat(each.on(2).get(0)).isEqualTo(2);
              each.close();
            }
          }
          assertThat(count(world, "buffers allocated")).isEqualTo(40);
          assertThat(count(world, "buffers reused")).isEqualTo(4 * 40);
        });
  }
}
