package braid.natives;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FutexTest {
  private static final long LONG_NANOS = Duration.ofHours(1).toNanos();

  @TempDir Path folder;

  @Test
  void wakesASleeperThatMappedTheSameFileElsewhere() throws Exception {
    var file = folder.resolve("word");
    try (var arena = Arena.ofShared()) {
      var mine = map(file, arena);
      var theirs = map(file, arena);
      assertThat(mine.address()).isNotEqualTo(theirs.address());
      var begun = new CountDownLatch(1);
      var sleeper =
          Thread.ofPlatform()
              .start(
                  () -> {
                    begun.countDown();
                    while (theirs.get(ValueLayout.JAVA_INT, 0) == 0) {
                      Futex.await(theirs, 0, LONG_NANOS);
                    }
                  });
      begun.await();
      mine.set(ValueLayout.JAVA_INT, 0, 1);
      Futex.wakeAll(mine);
      sleeper.join();
    }
  }

  @Test
  void aWaitEndsWithItsTime() {
    try (var arena = Arena.ofConfined()) {
      var word = arena.allocate(ValueLayout.JAVA_INT);
      var start = System.nanoTime();
      Futex.await(word, 0, 2_000_000);
      assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(1_900_000);
    }
  }

  @Test
  void aWaitForAChangedWordEndsAtOnce() {
    try (var arena = Arena.ofConfined()) {
      var word = arena.allocate(ValueLayout.JAVA_INT);
      word.set(ValueLayout.JAVA_INT, 0, 7);
      Futex.await(word, 6, LONG_NANOS);
      assertThat(word.get(ValueLayout.JAVA_INT, 0)).isEqualTo(7);
    }
  }

  private static MemorySegment map(Path file, Arena arena) throws IOException {
    if (!Files.exists(file)) {
      Files.write(file, new byte[4096]);
    }
    try (var channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return channel.map(FileChannel.MapMode.READ_WRITE, 0, 4096, arena);
    }
  }
}
