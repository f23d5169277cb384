package braid.internal.host;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.Place;
import braid.natives.LibC;
import java.util.List;
import org.junit.jupiter.api.Test;

class CoresTest {
  @Test
  void ranksDivideTheAllowedProcessors() {
    var allowed = List.of(2, 3, 6, 7, 9);
    assertThat(Cores.share(new Place(0, 2), allowed)).containsExactly(2, 3);
    assertThat(Cores.share(new Place(1, 2), allowed)).containsExactly(6, 7, 9);
  }

  @Test
  void moreRanksThanProcessorsShareThem() {
    var allowed = List.of(4, 5);
    assertThat(Cores.share(new Place(0, 3), allowed)).containsExactly(4);
    assertThat(Cores.share(new Place(1, 3), allowed)).containsExactly(5);
    assertThat(Cores.share(new Place(2, 3), allowed)).containsExactly(4);
  }

  @Test
  void aSingleRankIsNotBound() {
    assertThat(Cores.share(new Place(0, 1), List.of(0, 1))).isEmpty();
  }

  @Test
  void takeBindsTheThread() throws InterruptedException {
    var last = LibC.allowedProcessors().getLast();
    var after = new java.util.concurrent.atomic.AtomicReference<List<Integer>>(List.of());
    var thread =
        Thread.ofPlatform()
            .start(
                () -> {
                  new Cores(List.of(last), false).take();
                  after.set(LibC.allowedProcessors());
                });
    thread.join();
    assertThat(after.get()).containsExactly(last);
  }
}
