package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.GroupAborted;
import java.io.IOException;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class LocalRanksTest {
  @Test
  void aRankThatFailsReleasesTheOthersAndIsTheOneThrown() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    3,
                    world -> {
                      if (world.rank() == 1) {
                        throw new ArithmeticException("one is enough");
                      }
                      world.barrier();
                    }))
        .isInstanceOf(ArithmeticException.class)
        .hasMessage("one is enough")
        .satisfies(
            e ->
                assertThat(e.getSuppressed())
                    .hasSize(2)
                    .allSatisfy(
                        each ->
                            assertThat(each)
                                .isInstanceOf(GroupAborted.class)
                                .hasMessage(
                                    "waited for barrier in group `world` and was released: rank 1 failed: java.lang.ArithmeticException: one is enough")));
  }

  @Test
  void aCheckedFailureIsTheCause() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    1,
                    world -> {
                      throw new IOException("no such file");
                    }))
        .isInstanceOf(BraidException.class)
        .hasCauseInstanceOf(IOException.class);
  }

  @Test
  void threadsThatARankStartsAreOfThatRank() {
    LocalRanks.run(
        2,
        world -> {
          var seen = new ProcessGroup[1];
          var thread = Thread.ofPlatform().start(() -> seen[0] = ProcessGroup.world());
          thread.join();
          assertThat(seen[0]).isSameAs(world);
        });
  }

  @Test
  void noRanksAreRefused() {
    assertThatThrownBy(() -> LocalRanks.run(0, world -> {}))
        .hasMessage("ranks must be 1 or more but was 0; try 4");
  }

  @Test
  void aRankThatWaitsForThoseWhoseBodiesHaveEndedFails() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    3,
                    world -> {
                      if (world.rank() == 0) {
                        world.barrier();
                      }
                    }))
        .isExactlyInstanceOf(BraidException.class)
        .hasMessage(
            "waited for barrier in group `world` but ranks 1, 2 ended the cell and cannot come any more; make the matching call there too");
  }

  @Test
  void aCollectiveThatARankHasLeftFails() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      var x = SymmetricTensor.on(world).shape(2, 4).dtype(DType.FP32).allocate();
                      var y = SymmetricTensor.on(world).shape(2, 4).dtype(DType.FP32).allocate();
                      var all = Collectives.on(world);
                      all.allReduce(x, y);
                      if (world.rank() == 1) {
                        all.allReduce(x, y);
                      }
                    }))
        .isExactlyInstanceOf(BraidException.class)
        .hasMessageContaining("from rank 0")
        .hasMessageContaining("but rank 0 ended the cell and cannot come any more");
  }

  @Test
  void anAllocationThatARankHasLeftFails() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      if (world.rank() == 1) {
                        SymmetricTensor.on(world).shape(2, 4).dtype(DType.FP32).allocate();
                      }
                    }))
        .isExactlyInstanceOf(BraidException.class)
        .hasMessageContaining("waited for allocate `")
        .hasMessageContaining("but rank 0 ended the cell and cannot come any more");
  }

  /// One rank has ended, one is late: it is waited for.
  @Test
  void ranksThatAreLateAreWaitedFor() {
    for (int seed = 0; seed < 300; seed++) {
      var random = new Random(seed);
      int gone = random.nextInt(3);
      int late = (gone + 1 + random.nextInt(2)) % 3;
      long skewNanos = random.nextLong(seed % 20 == 0 ? 120_000_000 : 2_000_000);
      LocalRanks.run(
          3,
          world -> {
            if (world.rank() == gone) {
              return;
            }
            var pair = world.subset("pair", IntStream.range(0, 3).filter(r -> r != gone).toArray());
            long end = System.nanoTime() + (world.rank() == late ? skewNanos : 0);
            while (System.nanoTime() - end < 0) {
              Thread.onSpinWait();
            }
            assertThat(pair.gather((long) world.rank())).hasSize(2).contains((long) late);
          });
    }
  }
}
