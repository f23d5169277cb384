package braid.internal.shared;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.resource.AllocationFailed;
import braid.internal.resource.Rendezvous;
import braid.model.BraidException;
import braid.model.Place;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;

class SharedFileTest {
  private static final Path FOLDER = Path.of("/dev/shm");
  private final String token = UUID.randomUUID().toString();

  private List<Path> files() throws IOException {
    try (var all = Files.list(FOLDER)) {
      return all.filter(file -> file.getFileName().toString().startsWith(SharedFile.prefix(token)))
          .toList();
    }
  }

  private interface Action {
    void run() throws IOException;
  }

  private record Alone(String unique, Action during) implements Rendezvous {
    @Override
    public Place place() {
      return new Place(0, 1);
    }

    @Override
    public List<String> exchange(String label, String value) {
      try {
        during.run();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      return List.of(value);
    }
  }

  @Test
  void theFileIsPrivateAndUnlinkedOnceMapped() throws IOException {
    var seen = new ArrayList<String>();
    try (var memory =
        SharedFile.allocate(
            token,
            "x",
            1 << 20,
            new Alone(
                "x.1",
                () -> {
                  for (var file : files()) {
                    seen.add(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
                  }
                }))) {
      assertThat(seen).containsExactly("rw-------");
      assertThat(files()).isEmpty();
      assertThat(memory.all().byteSize()).isEqualTo(1 << 20);
      assertThat(memory.on(0).get(ValueLayout.JAVA_LONG, 1024)).isZero();
    }
  }

  @Test
  void tooLargeRequestsNameTheFreeBytes() throws IOException {
    long tooMuch = 1L << 50;
    // A sparse file may be that long, so the free space must be checked.
    assertThatThrownBy(() -> SharedFile.allocate(token, "x", tooMuch, new Alone("x.2", () -> {})))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("x needs " + tooMuch + " bytes per rank in /dev/shm, where ");
    assertThat(files()).isEmpty();
  }

  @Test
  void aFailedMeetingLeavesNoFile() throws IOException {
    var meeting =
        new Alone(
            "x.3",
            () -> {
              throw new BraidException("rank 1 did not join");
            });
    assertThatThrownBy(() -> SharedFile.allocate(token, "x", 4096, meeting))
        .hasMessage("rank 1 did not join");
    assertThat(files()).isEmpty();
  }

  @Test
  void namesCannotBeGuessedFromOneAnother() throws IOException {
    var names = new ArrayList<String>();
    for (var unique : List.of("world.1.1.1", "world.1.1.2")) {
      SharedFile.allocate(
              token,
              "x",
              4096,
              new Alone(unique, () -> names.add(only(files()).getFileName().toString())))
          .close();
    }
    assertThat(names).doesNotHaveDuplicates();
    assertThat(names).noneMatch(name -> name.contains("world") || name.contains(token));
  }

  /// Plants a file under the name, as a stranger who knew it would.
  @Test
  void aFileThatOthersMayOpenIsRefused() throws IOException {
    var name = new ArrayList<Path>();
    SharedFile.allocate(token, "x", 4096, new Alone("x.4", () -> name.add(only(files())))).close();
    var planted = Files.createFile(name.getFirst());
    Files.setPosixFilePermissions(planted, PosixFilePermissions.fromString("rw-rw-rw-"));
    assertThatThrownBy(() -> SharedFile.allocate(token, "x", 4096, new Alone("x.4", () -> {})))
        .isInstanceOf(AllocationFailed.class)
        .hasMessageContaining("and mode 666, not this user and 600");
    assertThat(files()).isEmpty();
  }

  @Test
  void ranksThatMapDifferentFilesAllFail() {
    var failures = new ConcurrentLinkedQueue<String>();
    var met = new CyclicBarrier(2);
    var outcomes = new ConcurrentHashMap<Integer, String>();
    try (var ranks = Executors.newVirtualThreadPerTaskExecutor()) {
      var second = new CountDownLatch(1);
      for (int rank = 0; rank < 2; rank++) {
        int mine = rank;
        var _ =
            ranks.submit(
                () -> {
                  if (mine == 1) {
                    second.await();
                  }
                  var meeting =
                      new Two(
                          mine,
                          "x.5",
                          value -> {
                            if (mine == 0) {
                              // Rank 0 has mapped it; rank 1 creates another under the same name.
                              Files.delete(only(files()));
                              second.countDown();
                            }
                            outcomes.put(mine, value);
                            met.await();
                            return List.of(outcomes.get(0), outcomes.get(1));
                          });
                  try {
                    SharedFile.allocate(token, "x", 4096, meeting).close();
                    failures.add("rank " + mine + " got memory of its own");
                  } catch (AllocationFailed e) {
                    assertThat(e).hasMessageContaining("so ranks mapped different ones (rank 0: ");
                  }
                  return 0;
                });
      }
    }
    assertThat(outcomes).hasSize(2);
    assertThat(failures).isEmpty();
  }

  private record Two(int rank, String unique, Meeting meeting) implements Rendezvous {
    interface Meeting {
      List<String> exchange(String value) throws Exception;
    }

    @Override
    public Place place() {
      return new Place(rank, 2);
    }

    @Override
    public List<String> exchange(String label, String value) {
      try {
        return meeting.exchange(value);
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private static Path only(List<Path> files) {
    assertThat(files).hasSize(1);
    return files.getFirst();
  }

  @Test
  void aSweepRemovesOnlyFilesOfItsSession() throws IOException {
    var left = Files.createFile(FOLDER.resolve(SharedFile.prefix(token) + "world.1.1.1"));
    var other = Files.createFile(FOLDER.resolve(SharedFile.prefix(token + "x") + "world.1.1.1"));
    try {
      assertThat(SharedFileSweep.ofSession(token).files()).isEqualTo(1);
      assertThat(left).doesNotExist();
      assertThat(other).exists();
    } finally {
      Files.deleteIfExists(other);
    }
    assertThat(SharedFileSweep.ofSession(token).files()).isZero();
  }

  @Test
  void removesFilesOfKilledSessionsButNotHeldOnes() throws IOException {
    var left = Files.createFile(FOLDER.resolve(SharedFile.prefix(token) + "0"));
    var held = FOLDER.resolve(SharedFile.prefix(token) + "1");
    try (var _ = FileChannel.open(held, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      assertThat(SharedFileSweep.ofKilledSessions().files()).isPositive();
      assertThat(left).doesNotExist();
      assertThat(held).exists();
    } finally {
      Files.deleteIfExists(held);
    }
  }

  @Test
  void aSweepReportsFilesItCannotRemove() throws IOException {
    var folder = Files.createDirectory(FOLDER.resolve(SharedFile.prefix(token) + "2"));
    var inside = Files.createFile(folder.resolve("file"));
    try {
      var swept = SharedFileSweep.ofSession(token);
      assertThat(swept.files()).isZero();
      assertThat(swept.line()).hasValueSatisfying(line -> assertThat(line).contains(folder + ""));
    } finally {
      Files.delete(inside);
      Files.delete(folder);
    }
  }
}
