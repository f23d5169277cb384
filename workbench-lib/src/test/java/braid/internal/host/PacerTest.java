package braid.internal.host;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.rank.Waits;
import braid.internal.work.Transfer;
import braid.model.Link;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class PacerTest {
  private static final long MILLI = 1_000_000;

  /// A link with a latency of 1 ms on which 1 MB takes 10 ms.
  private static final Link LINK = Link.parse("100MB/s,1ms");

  @Test
  void copiesThatAreReadyTogetherAreDeliveredInOrder() {
    var pacer = new Pacer(LINK);
    assertThat(pacer.reserve(0, 1_000_000)).isEqualTo(11 * MILLI);
    assertThat(pacer.reserve(0, 2_000_000)).isEqualTo(32 * MILLI);
  }

  @Test
  void idleTimeOfALinkIsNotSaved() {
    var pacer = new Pacer(LINK);
    assertThat(pacer.reserve(0, 1_000_000)).isEqualTo(11 * MILLI);
    assertThat(pacer.reserve(50 * MILLI, 1_000_000)).isEqualTo(61 * MILLI);
  }

  @Test
  void anUnlimitedLinkDeliversAtOnce() {
    assertThat(new Pacer(Link.UNLIMITED).reserve(5, Long.MAX_VALUE)).isEqualTo(5);
  }

  /// Makes forty copies of 1 ms, each with a sleep that ends late: deliveries are computed without
  /// the delays, so delays do not add up.
  @Test
  void theMeanSpeedIsTheLinks() {
    var engine = new CopyEngine(Link.parse("100MB/s"), new Waits(Duration.ofSeconds(30)));
    int copies = 40;
    long bytes = 100_000;
    try (var arena = Arena.ofShared()) {
      var from = arena.allocate(bytes);
      var to = arena.allocate(bytes);
      from.fill((byte) 7);
      long start = System.nanoTime();
      long ready = start;
      for (int i = 1; i <= copies; i++) {
        ready = engine.copy(() -> "a copy", Transfer.of(from, to), ready);
        assertThat(ready - start).isEqualTo(i * MILLI);
        assertThat(System.nanoTime() - ready).isGreaterThanOrEqualTo(0);
      }
      assertThat(to.get(ValueLayout.JAVA_BYTE, bytes - 1)).isEqualTo((byte) 7);
    }
  }
}
