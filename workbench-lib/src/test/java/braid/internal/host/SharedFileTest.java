package braid.internal.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.BraidException;
import braid.Place;
import braid.internal.resource.Rendezvous;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.UUID;
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

  private record Alone(String unique, Runnable during) implements Rendezvous {
    @Override
    public Place place() {
      return new Place(0, 1);
    }

    @Override
    public List<String> exchange(String label, String value) {
      during.run();
      return List.of(value);
    }
  }

  @Test
  void theFileIsPrivateAndGoneAsSoonAsAllHaveIt() throws IOException {
    var seen = new java.util.ArrayList<String>();
    try (var memory =
        SharedFile.allocate(
            token,
            "x",
            1 << 20,
            new Alone(
                "x.1",
                () -> {
                  try {
                    for (var file : files()) {
                      seen.add(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
                    }
                  } catch (IOException e) {
                    throw new java.io.UncheckedIOException(e);
                  }
                }))) {
      assertThat(seen).containsExactly("rw-------");
      assertThat(files()).isEmpty();
      assertThat(memory.all().byteSize()).isEqualTo(1 << 20);
      assertThat(memory.on(0).get(ValueLayout.JAVA_LONG, 1024)).isZero();
    }
  }

  @Test
  void moreThanThereIsIsAnErrorThatSaysHowMuchIsFree() throws IOException {
    long tooMuch = 1L << 50;
    // A sparse file may be as long as that, so it is the room that must be looked at.
    assertThatThrownBy(() -> SharedFile.allocate(token, "x", tooMuch, new Alone("x.2", () -> {})))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("x needs " + tooMuch + " bytes a rank of /dev/shm, where ");
    assertThat(files()).isEmpty();
  }

  @Test
  void aMeetingThatFailsLeavesNoFile() throws IOException {
    var meeting =
        new Alone(
            "x.3",
            () -> {
              throw new BraidException("rank 1 did not come");
            });
    assertThatThrownBy(() -> SharedFile.allocate(token, "x", 4096, meeting))
        .hasMessage("rank 1 did not come");
    assertThat(files()).isEmpty();
  }

  @Test
  void aSweepRemovesWhatKilledRanksLeftAndNothingElse() throws IOException {
    var left = Files.createFile(FOLDER.resolve(SharedFile.prefix(token) + "world.1.1.1"));
    var other = Files.createFile(FOLDER.resolve(SharedFile.prefix(token + "x") + "world.1.1.1"));
    try {
      assertThat(SharedFile.sweep(token)).isEqualTo(1);
      assertThat(left).doesNotExist();
      assertThat(other).exists();
    } finally {
      Files.deleteIfExists(other);
    }
    assertThat(SharedFile.sweep(token)).isZero();
  }
}
