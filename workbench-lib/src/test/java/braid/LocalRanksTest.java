package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
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
}
