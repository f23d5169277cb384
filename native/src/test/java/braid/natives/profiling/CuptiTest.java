package braid.natives.profiling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.cuda.Gpu;
import braid.natives.load.Libraries;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class CuptiTest {
  private static final long BYTES = 8L << 20;

  @BeforeEach
  void needsAGpuAndTheLibrary() {
    var missing = Gpu.missing();
    assumeTrue(missing.isEmpty(), () -> missing.orElse(""));
    assumeTrue(Libraries.find(Libraries.Library.CUPTI).isPresent(), "CUPTI is not installed here");
  }

  @Test
  void anActivityHasNameTimeStreamAndOwner() {
    try (var gpu = Gpu.open(0, "the test");
        var stream = gpu.stream(gpu.leastPriority())) {
      var one = gpu.allocate(BYTES);
      var other = gpu.allocate(BYTES);
      gpu.synchronize();
      try (var cupti = Cupti.begin(gpu)) {
        var number = cupti.streamId(stream);
        var before = System.nanoTime();
        cupti.push(7);
        stream.fill(one, (byte) 1, BYTES);
        cupti.push(8);
        stream.copy(other, one, BYTES);
        cupti.pop();
        cupti.pop();
        stream.fill(other, (byte) 2, BYTES);
        stream.synchronize();
        var after = System.nanoTime();
        var activities =
            cupti.end().stream().filter(activity -> activity.streamId() == number).toList();
        assertThat(cupti.dropped()).isZero();
        assertThat(cupti.clockErrorNanos()).isBetween(0L, 1_000_000L);
        assertThat(activities).extracting(Cupti.Activity::externalId).containsExactly(7L, 8L, -1L);
        var slack = cupti.clockErrorNanos() + 1_000_000; // CUPTI's own, between GPU and host
        assertThat(activities)
            .allSatisfy(
                activity -> {
                  assertThat(activity.startNanos()).isGreaterThan(before - slack);
                  assertThat(activity.endNanos())
                      .isGreaterThan(activity.startNanos())
                      .isLessThan(after + slack);
                });
        assertThat(activities.get(1))
            .isInstanceOfSatisfying(
                Cupti.Copy.class,
                copy -> {
                  assertThat(copy.bytes()).isEqualTo(BYTES);
                  assertThat(copy.copyKind()).isEqualTo(8);
                });
      }
      gpu.free(one);
      gpu.free(other);
    }
  }

  @Test
  void everyReplayOfANodeIsItsOwners() {
    try (var gpu = Gpu.open(0, "the test");
        var stream = gpu.stream(gpu.leastPriority())) {
      var memory = gpu.allocate(BYTES);
      gpu.synchronize();
      try (var cupti = Cupti.begin(gpu)) {
        stream.beginCapture();
        cupti.claimNodes(-1);
        stream.fill(memory, (byte) 1, BYTES);
        assertThat(cupti.claimNodes(41)).isEqualTo(1);
        stream.fill(memory, (byte) 2, BYTES / 2);
        assertThat(cupti.claimNodes(42)).isEqualTo(1);
        try (var graph = stream.endCapture()) {
          for (int replay = 0; replay < 3; replay++) {
            cupti.push(100 + replay);
            graph.launch(stream);
            cupti.pop();
          }
          stream.synchronize();
          var activities = cupti.end();
          assertThat(activities)
              .extracting(Cupti.Activity::externalId)
              .containsExactly(41L, 42L, 41L, 42L, 41L, 42L);
          assertThat(activities)
              .extracting(activity -> activity.correlation().launchId())
              .containsExactly(100L, 100L, 101L, 101L, 102L, 102L);
        }
      }
      gpu.free(memory);
    }
  }

  @Test
  void aProfileFollowsAnotherButNotWithinIt() {
    try (var gpu = Gpu.open(0, "the test")) {
      for (int i = 0; i < 2; i++) {
        try (var cupti = Cupti.begin(gpu)) {
          assertThatThrownBy(() -> Cupti.begin(gpu)).hasMessageContaining("a profile is running");
          assertThat(cupti.end()).isEmpty();
          assertThatThrownBy(cupti::end).hasMessageContaining("has ended");
        }
      }
    }
  }
}
