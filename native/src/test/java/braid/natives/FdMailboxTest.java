package braid.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FdMailboxTest {
  private static final Duration LONG = Duration.ofMinutes(5);
  private static final Duration SHORT = Duration.ofMillis(120);

  @TempDir Path folder;

  private final String unique = "braid-test-" + UUID.randomUUID();
  private int openBefore;

  @BeforeEach
  void openDescriptorsAreCounted() throws IOException {
    // The first use of the calls may itself open files.
    FdMailbox.open(unique + "-warm").close();
    openBefore = openFiles();
  }

  @AfterEach
  void nothingStaysOpen() throws IOException {
    assertThat(openFiles()).isEqualTo(openBefore);
  }

  @Test
  void carriesADescriptorOfTheSameOpenFile() throws IOException {
    try (var sender = FdMailbox.open(unique + "-0");
        var receiver = FdMailbox.open(unique + "-1")) {
      var file = new Opened("hello");
      sender.send(unique + "-1", 0, file.fd());
      var received = take(receiver, 0);
      assertThat(received).isNotEqualTo(file.fd());
      file.close();
      assertThat(Files.readString(Path.of("/proc/self/fd/" + received))).isEqualTo("hello");
      FdMailbox.closeFd(received);
    }
  }

  @Test
  void aMailboxSendsToItself() throws IOException {
    try (var mailbox = FdMailbox.open(unique);
        var file = new Opened("own")) {
      mailbox.send(unique, 5, file.fd());
      var received = take(mailbox, 5);
      assertThat(Files.readString(Path.of("/proc/self/fd/" + received))).isEqualTo("own");
      FdMailbox.closeFd(received);
    }
  }

  @Test
  void manyDescriptorsArriveInAnyOrder() throws IOException {
    var senders = new HashSet<Integer>();
    try (var mailbox = FdMailbox.open(unique)) {
      for (int sender = 299; sender >= 0; sender--) {
        try (var file = new Opened("first of " + sender);
            var second = new Opened("second of " + sender)) {
          mailbox.send(unique, sender, file.fd());
          mailbox.send(unique, sender, second.fd());
        }
        senders.add(sender);
      }
      for (var side : List.of("first of ", "second of ")) {
        var received = mailbox.receive(senders, LONG, FdMailboxTest::goOn);
        assertThat(received.keySet()).isEqualTo(senders);
        for (var entry : received.entrySet()) {
          assertThat(Files.readString(Path.of("/proc/self/fd/" + entry.getValue())))
              .isEqualTo(side + entry.getKey());
          FdMailbox.closeFd(entry.getValue());
        }
      }
    }
  }

  @Test
  void unclaimedDescriptorsAreKeptAndClosedAtTheEnd() throws IOException {
    try (var mailbox = FdMailbox.open(unique);
        var file = new Opened("kept")) {
      mailbox.send(unique, 1, file.fd());
      mailbox.send(unique, 2, file.fd());
      mailbox.send(unique, 3, file.fd());
      FdMailbox.closeFd(take(mailbox, 2));
      FdMailbox.closeFd(take(mailbox, 1));
    }
  }

  @Test
  void aDescriptorDoesNotSurviveAnExec() throws IOException {
    try (var mailbox = FdMailbox.open(unique);
        var file = new Opened("mine")) {
      mailbox.send(unique, 0, file.fd());
      var received = take(mailbox, 0);
      var flags =
          Files.readAllLines(Path.of("/proc/self/fdinfo/" + received)).stream()
              .filter(line -> line.startsWith("flags:"))
              .findFirst()
              .orElseThrow();
      assertThat(Integer.parseInt(flags.substring(6).strip(), 8) & 02000000).isNotZero();
      FdMailbox.closeFd(received);
    }
  }

  @Test
  void missingSendersAreNamedAfterTheTimeout() throws IOException {
    try (var mailbox = FdMailbox.open(unique);
        var file = new Opened("there")) {
      mailbox.send(unique, 1, file.fd());
      assertThatThrownBy(() -> mailbox.receive(Set.of(0, 1, 2), SHORT, FdMailboxTest::goOn))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("[0, 2]")
          .hasMessageContaining("arrived from [1]")
          .hasMessageContaining(unique);
    }
  }

  @Test
  void theCheckEndsTheWait() {
    var calls = new AtomicInteger();
    try (var mailbox = FdMailbox.open(unique)) {
      assertThatThrownBy(
              () ->
                  mailbox.receive(
                      Set.of(0),
                      LONG,
                      () -> {
                        if (calls.incrementAndGet() == 3) {
                          throw new CancellationException("released");
                        }
                      }))
          .isInstanceOf(CancellationException.class);
    }
    assertThat(calls).hasValue(3);
  }

  @Test
  void sendingToAClosedMailboxFails() throws IOException {
    try (var mailbox = FdMailbox.open(unique);
        var file = new Opened("lost")) {
      assertThatThrownBy(() -> mailbox.send(unique + "-closed", 0, file.fd()))
          .hasMessageContaining(unique + "-closed")
          .hasMessageContaining("open every rank's mailbox before the first one sends");
    }
  }

  @Test
  void aNameIsTakenOnce() {
    try (var _ = FdMailbox.open(unique)) {
      assertThatThrownBy(() -> FdMailbox.open(unique))
          .hasMessageContaining("bind")
          .hasMessageContaining(unique);
    }
    FdMailbox.open(unique).close();
  }

  @Test
  void aNameMustFit() {
    assertThatThrownBy(() -> FdMailbox.open("x".repeat(108)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("1 to 107");
    FdMailbox.open(unique.substring(0, 20) + "x".repeat(87)).close();
  }

  @Test
  void aDescriptorThatIsNotOpenIsAnError() {
    try (var mailbox = FdMailbox.open(unique)) {
      assertThatThrownBy(() -> mailbox.send(unique, 0, 1_000_000_000))
          .hasMessageContaining("errno 9");
    }
  }

  @Test
  void aClosedMailboxIsClosedForGood() {
    var mailbox = FdMailbox.open(unique);
    mailbox.close();
    mailbox.close();
    assertThatThrownBy(() -> mailbox.receive(Set.of(0), SHORT, FdMailboxTest::goOn))
        .hasMessageContaining("closed");
  }

  @Test
  void worksBetweenProcesses() throws Exception {
    var processes = new ArrayList<Process>();
    try (var mailbox = FdMailbox.open(unique)) {
      for (int rank = 1; rank <= 3; rank++) {
        processes.add(start(unique, rank, folder.resolve("of-" + rank)));
      }
      var received = mailbox.receive(Set.of(1, 2, 3), LONG, FdMailboxTest::goOn);
      for (var process : processes) {
        assertThat(process.waitFor()).isZero();
      }
      for (Map.Entry<Integer, Integer> entry : received.entrySet()) {
        assertThat(Files.readString(Path.of("/proc/self/fd/" + entry.getValue())))
            .isEqualTo("from rank " + entry.getKey());
        FdMailbox.closeFd(entry.getValue());
      }
    }
  }

  private static void goOn() {}

  private static int take(FdMailbox mailbox, int sender) {
    return Objects.requireNonNull(
        mailbox.receive(Set.of(sender), LONG, FdMailboxTest::goOn).get(sender));
  }

  private static Process start(String to, int rank, Path file) throws IOException {
    return new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--enable-native-access=ALL-UNNAMED",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            System.getProperty("java.class.path"),
            Sender.class.getName(),
            to,
            Integer.toString(rank),
            file.toString())
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }

  /// Sends the descriptor of a file, deletes the file, and ends.
  static final class Sender {
    private Sender() {}

    public static void main(String[] arguments) throws IOException {
      var rank = Integer.parseInt(arguments[1]);
      var path = Path.of(arguments[2]);
      Files.writeString(path, "from rank " + rank);
      try (var mailbox = FdMailbox.open(arguments[0] + "-" + rank);
          var file = new RandomAccessFile(path.toFile(), "r")) {
        mailbox.send(arguments[0], rank, numberOf(path));
        assertThat(file.length()).isPositive();
      }
      Files.delete(path);
    }
  }

  /// An open file and its descriptor, which Java does not expose.
  private final class Opened implements AutoCloseable {
    private final Path path;
    private final RandomAccessFile file;

    Opened(String text) throws IOException {
      path = Files.createTempFile(folder, "open", "");
      Files.writeString(path, text);
      file = new RandomAccessFile(path.toFile(), "r");
    }

    int fd() throws IOException {
      return numberOf(path);
    }

    @Override
    public void close() throws IOException {
      file.close();
    }
  }

  private static int numberOf(Path path) throws IOException {
    var real = path.toRealPath();
    for (var entry : openEntries()) {
      if (Files.isSymbolicLink(entry) && Files.readSymbolicLink(entry).equals(real)) {
        return Integer.parseInt(entry.getFileName().toString());
      }
    }
    throw new IOException(path + " is not open");
  }

  /// Counts sockets and files of this test. The JVM opens and closes others at any time.
  private int openFiles() throws IOException {
    var count = 0;
    for (var entry : openEntries()) {
      if (Files.isSymbolicLink(entry)) {
        var target = Files.readSymbolicLink(entry).toString();
        count += target.startsWith("socket:") || target.startsWith(folder.toString()) ? 1 : 0;
      }
    }
    return count;
  }

  private static List<Path> openEntries() throws IOException {
    try (Stream<Path> entries = Files.list(Path.of("/proc/self/fd"))) {
      return entries.toList();
    }
  }
}
