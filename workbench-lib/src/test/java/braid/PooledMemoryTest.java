package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.context.RankContext;
import braid.internal.memory.BufferPool;
import braid.internal.memory.Call;
import braid.internal.memory.Counters;
import braid.internal.memory.Members;
import braid.internal.resource.AllocationFailed;
import braid.internal.resource.BufferRequest;
import braid.internal.resource.FreeSpace;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.model.BraidException;
import braid.model.GroupAborted;
import braid.model.MemoryKind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Memory that the pool keeps, frees or never reuses.
class PooledMemoryTest {
  private static final MemoryKind KIND = MemoryKind.NATIVE;

  private static SymmetricMemory take(BufferPool pool, long bytes) {
    return pool.take(Call.of("take", bytes + " bytes"), KIND, bytes);
  }

  private static long count(ProcessGroup group, String counter) {
    return group.counters().getOrDefault(counter, -1L);
  }

  @Test
  void memoryThatABrokenUserMayStillWriteToIsNotUsedAgain() {
    LocalRanks.run(
        3,
        world -> {
          var broken = take(world.pool(), 64);
          if (world.rank() == 1) {
            broken.spoil();
            // As every `finally` does.
            broken.close();
          } else {
            broken.close();
          }
          // All ranks learn of it in shared memory, so all take new memory, though two did not
          // break off.
          try (var next = take(world.pool(), 64)) {
            assertThat(next.all().toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
            assertThat(count(world, "buffers allocated")).isEqualTo(2);
            assertThat(count(world, "buffers reused")).isZero();
          }
          take(world.pool(), 64).close();
          assertThat(count(world, "buffers reused")).isEqualTo(1);
        });
  }

  @Test
  void aNewEpochBeginsWithAnEmptyPool() throws Exception {
    var front = new CyclicBarrier(2);
    LocalRanks.run(
        2,
        world -> {
          var kept = SymmetricTensor.on(world).shape(4).allocate();
          take(world.pool(), 64).close();
          world.barrier();
          RankContext.current().release("a cell failed");
          // Rank 0 makes one more call than rank 1.
          if (world.rank() == 0) {
            assertThatThrownBy(() -> take(world.pool(), 64)).isInstanceOf(GroupAborted.class);
          }
          front.await(240, TimeUnit.SECONDS);
          RankContext.current().resume(2);
          // A tensor of the old epoch is closed in the new one, on one rank before the other.
          if (world.rank() == 0) {
            kept.close();
          }
          take(world.pool(), 64).close();
          take(world.pool(), 64).close();
          kept.close();
          assertThat(count(world, "buffers allocated")).isEqualTo(3);
          assertThat(count(world, "buffers reused")).isEqualTo(1);
          world.barrier();
        });
  }

  @Test
  void aGroupThatOneRankOpenedMoreOftenWorksInTheNextEpoch() {
    var front = new CyclicBarrier(2);
    LocalRanks.run(
        2,
        world -> {
          // Rank 1 failed before it closed the group and opened it again.
          for (int i = 0; i <= 1 - world.rank(); i++) {
            world.subset("pair", 0, 1).close();
          }
          RankContext.current().release("a cell failed");
          front.await(240, TimeUnit.SECONDS);
          RankContext.current().resume(2);
          var pair = world.subset("pair", 0, 1);
          assertThat(pair.gather((long) pair.rank())).containsExactly(0, 1);
          SymmetricTensor.on(pair).shape(3).allocate().close();
        });
  }

  @Test
  void waitingRanksNameTheTensorThatAnotherHolds() {
    LocalRanks.run(
        3,
        world -> {
          var x = SymmetricTensor.on(world).shape(4).name("x").allocate();
          if (world.rank() == 2) {
            var context = RankContext.current();
            assertThat(context.waits().current()).isEmpty();
            world.gather(1L);
            // The others have closed it and are on their way to the next.
            x.local().fill(1);
            x.close();
          } else {
            x.close();
            world.gather(1L);
          }
          SymmetricTensor.on(world).shape(4).name("y").allocate().close();
          assertThat(count(world, "buffers reused")).isEqualTo(1);
        });
  }

  /// Memory of a machine with a limit per rank.
  private static final class Room implements SymmetricMemory.Allocator {
    private long leftBytes;

    Room(long bytes) {
      leftBytes = bytes;
    }

    @Override
    public SymmetricMemory allocate(
        MemoryKind kind, String label, long bytesPerRank, Rendezvous rendezvous) {
      boolean fits = bytesPerRank <= leftBytes;
      if (rendezvous.exchange(label, fits ? "" : "no room").contains("no room")) {
        throw new AllocationFailed(label + ": no room, " + leftBytes + " left");
      }
      leftBytes -= bytesPerRank;
      var arena = Arena.ofShared();
      return SymmetricMemory.inPieces(
          List.of(pretended(arena.allocate(Long.BYTES), bytesPerRank)),
          "a machine with little memory has it in pieces",
          () -> {
            leftBytes += bytesPerRank;
            arena.close();
          });
    }

    @SuppressWarnings("restricted") // Nobody looks into it.
    private static MemorySegment pretended(MemorySegment little, long bytes) {
      return little.reinterpret(bytes);
    }

    @Override
    public List<FreeSpace> freeSpaces(MemoryKind kind, List<Integer> ranks) {
      return List.of(
          new FreeSpace("room", leftBytes, List.of(RankContext.current().place().rank()), 1, 1));
    }

    @Override
    public void zero(MemorySegment part) {}
  }

  private static BufferPool pool(ProcessGroup group, Room room) {
    return new BufferPool(
        new Members(group.name(), group.members(), group.place()),
        group.context().waits(),
        group.calls(),
        new Counters(),
        () -> room,
        group::rendezvous);
  }

  @Test
  void aFailedAllocationFreesIdleMemoryEverywhereAndRetries() {
    LocalRanks.run(
        3,
        world -> {
          // One rank has less than the others.
          var room = new Room(world.rank() == 1 ? 100 : 1000);
          try (var pool = pool(world, room)) {
            take(pool, 60).close();
            take(pool, 30).close();
            try (var large = take(pool, 90)) {
              assertThat(large.bytesPerRank()).isEqualTo(90);
              assertThatThrownBy(() -> take(pool, 20))
                  .isInstanceOf(AllocationFailed.class)
                  .hasMessageStartingWith("take 20 bytes: no room");
            }
            // Works again once memory is free.
            take(pool, 20).close();
          }
          assertThat(room.leftBytes).isEqualTo(world.rank() == 1 ? 100 : 1000);
        });
  }

  private static BufferRequest request(String name, boolean symmetric, long bytes, int ranks) {
    return new BufferRequest(name, symmetric, Collections.nCopies(ranks, bytes));
  }

  private static void grant(BufferPool pool, BufferRequest... buffers) {
    pool.grant(Call.of("grant", "a plan"), KIND, List.of(buffers), "take less");
  }

  @Test
  void aPlanThatOneRankHasNoRoomForIsRefusedOnAllRanksInOneLine() {
    long unit = BufferPool.UNGRANTED_BYTES_PER_RANK;
    LocalRanks.run(
        3,
        world -> {
          var room = new Room(world.rank() == 1 ? 10 * unit : 100 * unit);
          try (var pool = pool(world, room)) {
            var x = request("x", true, 6 * unit, 3);
            assertThatThrownBy(() -> grant(pool, x, request("y", false, 5 * unit, 3)))
                .isInstanceOf(AllocationFailed.class)
                .hasMessage(
                    "a plan: the buffers need 704 MiB of room for rank 1 but 640 MiB are free there: rank 1 needs `x` 384 MiB, `y` 320 MiB; take less");
            grant(pool, x, request("y", false, 4 * unit, 3));
            assertThat(room.leftBytes).isEqualTo(world.rank() == 1 ? 10 * unit : 100 * unit);
          }
        });
  }

  @Test
  void pooledMemoryCountsAsFreeForAPlan() {
    long unit = BufferPool.UNGRANTED_BYTES_PER_RANK;
    LocalRanks.run(
        2,
        world -> {
          var room = new Room(8 * unit);
          try (var pool = pool(world, room)) {
            take(pool, 3 * unit).close();
            take(pool, unit / 2).close();
            assertThat(room.leftBytes).isEqualTo(4 * unit + unit / 2);
            // A pooled buffer that fits is used once.
            var fits = request("fits", true, 3 * unit, 2);
            var rest = request("rest", false, 4 * unit + unit / 2, 2);
            grant(pool, fits, rest);
            assertThat(room.leftBytes).isEqualTo(4 * unit + unit / 2);
            // Pooled buffers that do not fit are freed if their memory is needed.
            grant(pool, fits, rest, request("more", true, unit / 2, 2));
            assertThat(room.leftBytes).isEqualTo(4 * unit + unit / 2);
            grant(pool, fits, rest, request("more", true, unit / 2 - 1, 2));
            assertThat(room.leftBytes).isEqualTo(8 * unit);
            assertThatThrownBy(() -> grant(pool, fits, fits, rest))
                .isInstanceOf(AllocationFailed.class)
                .hasMessageContaining("need 672 MiB of room for rank 0 but 512 MiB are free there");
          }
        });
  }

  @Test
  void aPlanOfLittleMemoryIsGrantedWithoutAMeeting() {
    LocalRanks.run(
        2,
        world -> {
          try (var pool = pool(world, new Room(1))) {
            take(pool, 1).close();
            var meetings = count(world, "meetings");
            grant(pool, request("x", true, BufferPool.UNGRANTED_BYTES_PER_RANK - 1, 2));
            assertThat(count(world, "meetings")).isEqualTo(meetings);
          }
        });
  }

  @Test
  void ranksThatPooledDifferentMemoryAreNamedByTheGrant() {
    long unit = BufferPool.UNGRANTED_BYTES_PER_RANK;
    LocalRanks.run(
        2,
        world -> {
          try (var pool = pool(world, new Room(100 * unit))) {
            var x = take(pool, unit);
            if (world.rank() == 0) {
              x.close();
            }
            assertThatThrownBy(() -> grant(pool, request("x", true, unit, 2)))
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("tensors must be closed in the same order on every rank")
                .hasMessageContaining(
                    "rank 0 has 0 bytes of new memory, rank 1 has %d".formatted(unit));
          }
        });
  }

  @Test
  void theLongestIdleMemoryIsFreedFirst() {
    LocalRanks.run(
        1,
        world -> {
          long third = BufferPool.MAX_IDLE_BYTES_PER_RANK / 3;
          long all = 100 * third;
          var room = new Room(all);
          try (var pool = pool(world, room)) {
            var taken = IntStream.range(0, 4).mapToObj(i -> take(pool, third - i)).toList();
            taken.forEach(SymmetricMemory::close);
            assertThat(room.leftBytes).isEqualTo(all - 3 * third + 1 + 2 + 3);
            // The first one returned is freed, the others are kept.
            take(pool, third - 1).close();
            assertThat(room.leftBytes).isEqualTo(all - 3 * third + 1 + 2 + 3);
            take(pool, third).close();
            assertThat(room.leftBytes).isEqualTo(all - 3 * third + 1 + 3);
            // A buffer larger than the limit of idle memory is freed, and displaces no other.
            take(pool, 3 * third + 3).close();
            assertThat(room.leftBytes).isEqualTo(all - 3 * third + 1 + 3);
          }
          assertThat(room.leftBytes).isEqualTo(all);
        });
  }

  @Test
  void manyBuffersAreUsedAndFewAreKept() {
    LocalRanks.run(
        1,
        world -> {
          var room = new Room(1 << 20);
          try (var pool = pool(world, room)) {
            Deque<SymmetricMemory> taken = new ArrayDeque<>();
            for (int i = 0; i < 1000; i++) {
              taken.add(take(pool, 1));
            }
            taken.forEach(SymmetricMemory::close);
            assertThat(room.leftBytes).isEqualTo((1 << 20) - BufferPool.MAX_IDLE_BUFFERS);
          }
          assertThat(room.leftBytes).isEqualTo(1 << 20);
        });
  }

  @Test
  void memoryThatIsStillLentOutlivesThePool() {
    LocalRanks.run(
        2,
        world -> {
          var pair = world.subset("pair", 0, 1);
          var lent = take(pair.pool(), 64);
          List<MemorySegment> parts = List.of(lent.on(0), lent.on(1));
          pair.close();
          parts.get(1).fill((byte) 1);
          lent.close();
          lent.close();
          assertThatThrownBy(() -> parts.get(0).get(ValueLayout.JAVA_BYTE, 0))
              .isInstanceOf(IllegalStateException.class);
          assertThatThrownBy(() -> take(pair.pool(), 64))
              .isInstanceOf(BraidException.class)
              .hasMessageContaining("group `pair` is closed");
        });
  }

  @Test
  void aTensorsNameIsShortAndPrintable() {
    LocalRanks.run(
        1,
        world -> {
          for (var bad : List.of("", "a\nb", "x".repeat(65), "a\0b")) {
            assertThatThrownBy(() -> SymmetricTensor.on(world).name(bad))
                .hasMessageStartingWith(
                    "a tensor's name must be 1 to 64 printable characters but was `");
          }
        });
  }
}
