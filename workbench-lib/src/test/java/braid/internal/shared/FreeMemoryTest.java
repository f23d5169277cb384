package braid.internal.shared;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.rank.Waits;
import braid.model.BraidException;
import braid.model.Place;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Ranks of one machine that request memory concurrently get no more than is available.
class FreeMemoryTest {
  private static final long MACHINE_BYTES = 100 * FreeMemory.CHECKED_BYTES;
  private static final long REQUESTED_BYTES = 60 * FreeMemory.CHECKED_BYTES;

  /// Free memory of a simulated machine, used up only when memory is filled.
  private final AtomicLong left = new AtomicLong(MACHINE_BYTES);

  private final String token = UUID.randomUUID().toString();

  private FreeMemory memory(int rank, int ranks) {
    return new FreeMemory(
        token, new Place(rank, ranks), new Waits(Duration.ofSeconds(30)), left::get);
  }

  private boolean fill(long bytes) {
    left.addAndGet(-bytes);
    return true;
  }

  private static Path ledger(String token) {
    return SharedFile.file(token, "memory");
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4, 8})
  void oneOfConcurrentRequestsForMoreThanHalfIsGranted(int ranks) throws Exception {
    var together = new CyclicBarrier(ranks);
    var refused = new ConcurrentLinkedQueue<String>();
    var threads = new ArrayList<Thread>();
    for (int rank = 0; rank < ranks; rank++) {
      var memory = memory(rank, ranks);
      threads.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    try {
                      together.await(240, TimeUnit.SECONDS);
                      memory.take(REQUESTED_BYTES, () -> fill(REQUESTED_BYTES));
                    } catch (BraidException e) {
                      refused.add(e.getMessage());
                    } catch (Exception e) {
                      refused.add("unexpected: " + e);
                    }
                  }));
    }
    for (var thread : threads) {
      thread.join();
    }
    assertThat(left).hasValue(MACHINE_BYTES - REQUESTED_BYTES);
    assertThat(refused)
        .hasSize(ranks - 1)
        .allSatisfy(
            message ->
                assertThat(message)
                    .startsWith(
                        REQUESTED_BYTES
                            + " bytes were requested but "
                            + (MACHINE_BYTES - REQUESTED_BYTES)
                            + " are available; the ranks of this machine hold ")
                    .contains(Long.toString(REQUESTED_BYTES), " + ")
                    .endsWith(
                        " and would hold %d together; take a smaller problem or fewer ranks"
                            .formatted(2 * REQUESTED_BYTES)));
    memory(0, ranks).close();
    assertThat(ledger(token)).doesNotExist();
  }

  @Test
  void releasedMemoryIsGrantedAgainAndFailedFillsHoldNone() {
    var first = memory(0, 2);
    var second = memory(1, 2);
    assertThat(first.take(REQUESTED_BYTES, () -> fill(REQUESTED_BYTES))).isTrue();
    assertThatThrownBy(
            () ->
                second.take(
                    FreeMemory.CHECKED_BYTES,
                    () -> {
                      throw new IllegalStateException("no arena");
                    }))
        .hasMessage("no arena");
    assertThatThrownBy(() -> second.take(REQUESTED_BYTES, () -> fill(REQUESTED_BYTES)))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("hold %d + 0 and".formatted(REQUESTED_BYTES));
    left.addAndGet(REQUESTED_BYTES);
    first.released(REQUESTED_BYTES);
    assertThat(second.take(REQUESTED_BYTES, () -> fill(REQUESTED_BYTES))).isTrue();
    assertThatThrownBy(() -> first.take(REQUESTED_BYTES, () -> fill(REQUESTED_BYTES)))
        .hasMessageContaining("hold 0 + %d and".formatted(REQUESTED_BYTES));
    first.close();
    second.released(REQUESTED_BYTES);
    second.close();
    assertThat(ledger(token)).doesNotExist();
  }

  @Test
  void smallRequestsAreNotChecked() {
    left.set(0);
    assertThat(memory(0, 2).take(FreeMemory.CHECKED_BYTES - 1, () -> true)).isTrue();
    assertThat(ledger(token)).doesNotExist();
  }

  /// Runs processes on a simulated machine whose free memory is in a file.
  @Test
  void processesTakeTurnsToo(@TempDir Path folder) throws Exception {
    var machine = folder.resolve("left");
    Files.write(machine, ByteBuffer.allocate(Long.BYTES).putLong(MACHINE_BYTES).array());
    var processes = new ArrayList<Process>();
    for (int rank : IntStream.range(0, 4).toArray()) {
      processes.add(
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                  "--enable-native-access=ALL-UNNAMED",
                  "-XX:TieredStopAtLevel=1",
                  "-cp",
                  System.getProperty("java.class.path"),
                  OnRank.class.getName(),
                  token,
                  Integer.toString(rank),
                  machine.toString())
              .redirectErrorStream(true)
              .start());
    }
    var printed = new ArrayList<String>();
    for (var process : processes) {
      printed.add(
          new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip());
      assertThat(process.waitFor()).as(printed.toString()).isZero();
    }
    Files.deleteIfExists(ledger(token));
    assertThat(printed).filteredOn("granted"::equals).hasSize(1);
    assertThat(printed).filteredOn(text -> text.contains("bytes were requested but")).hasSize(3);
  }

  static final class OnRank {
    private OnRank() {}

    public static void main(String[] args) throws IOException {
      try (var machine =
          FileChannel.open(Path.of(args[2]), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        var memory =
            new FreeMemory(
                args[0],
                new Place(Integer.parseInt(args[1]), 4),
                new Waits(Duration.ofSeconds(30)),
                () -> left(machine));
        try {
          memory.take(REQUESTED_BYTES, () -> fill(machine));
          System.out.println("granted");
        } catch (BraidException e) {
          System.out.println(e.getMessage());
        }
      }
    }

    private static long left(FileChannel machine) {
      try {
        var bytes = ByteBuffer.allocate(Long.BYTES);
        machine.read(bytes, 0);
        return bytes.getLong(0);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private static boolean fill(FileChannel machine) {
      try {
        machine.write(
            ByteBuffer.allocate(Long.BYTES).putLong(0, left(machine) - REQUESTED_BYTES), 0);
        return true;
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
