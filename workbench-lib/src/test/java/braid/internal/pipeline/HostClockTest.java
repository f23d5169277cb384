package braid.internal.pipeline;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HostClockTest {
  @TempDir Path folder;

  @Test
  void bootsAndTimeNamespacesHaveClocksOfTheirOwn() throws Exception {
    var boot = Files.writeString(folder.resolve("boot"), "a\n");
    var otherBoot = Files.writeString(folder.resolve("other-boot"), "b\n");
    var space = Files.createSymbolicLink(folder.resolve("time"), Path.of("time:[1]"));
    var otherSpace = Files.createSymbolicLink(folder.resolve("other-time"), Path.of("time:[2]"));
    var clock = HostClock.identity(boot, space);
    assertThat(clock).isPresent().isEqualTo(HostClock.identity(boot, space));
    assertThat(HostClock.identity(otherBoot, space)).isNotEqualTo(clock);
    assertThat(HostClock.identity(boot, otherSpace)).isNotEqualTo(clock);
  }

  @Test
  void unknownClocksAreNotShared() throws Exception {
    var empty = Files.writeString(folder.resolve("empty"), "");
    assertThat(HostClock.identity(folder.resolve("none"), folder.resolve("time"))).isEmpty();
    assertThat(HostClock.identity(empty, folder.resolve("time"))).isEmpty();
  }
}
