package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.launcher.cell.Cell;
import braid.model.BackendKind;
import braid.model.BraidException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/// Resources that a front still holds after it replaced its ranks or could not start them.
@Isolated
class LongLifeTest {
  private static final int TIMES = 5;

  @TempDir Path home;

  private SessionOptions options(Optional<String> link) {
    return new SessionOptions(1, BackendKind.HOST, link, home);
  }

  /// Open descriptors by kind: jars, sockets, pipes, other files.
  private static Map<String, Integer> descriptors() throws IOException {
    var counts = new TreeMap<String, Integer>();
    try (var all = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
      for (var each : all) {
        var target = target(each);
        var kind =
            target.endsWith(".jar")
                ? "jar"
                : target.startsWith("/") ? "file" : target.replaceAll(":.*", "");
        counts.merge(kind, 1, Integer::sum);
      }
    }
    return counts;
  }

  private static String target(Path descriptor) throws IOException {
    try {
      return Files.readSymbolicLink(descriptor).toString();
    } catch (NoSuchFileException e) {
      return "/closed meanwhile";
    }
  }

  private static int open(String kind) throws IOException {
    return descriptors().getOrDefault(kind, 0);
  }

  /// Waits until there are no more sockets: those of a dead rank are closed after its output.
  private static void awaitSockets(int most) throws IOException {
    while (open("socket") > most) {
      Thread.onSpinWait();
    }
  }

  private static long threads(String name) {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals(name))
        .count();
  }

  /// Garbage may remain until it is collected; jars, and memory that collecting the old ranks'
  /// compiler would free, may not.
  @Test
  void restartsKeepNeitherJarsNorMemory() throws Exception {
    try (var session = Session.start(options(Optional.empty()))) {
      session.restart();
      int jars = open("jar");
      int sockets = open("socket");
      var heap = ManagementFactory.getMemoryMXBean();
      long before = heap.getHeapMemoryUsage().getUsed();
      for (int i = 0; i < TIMES; i++) {
        assertThat(session.run(new Cell("cell 1", "%restart"), new Recorded()).failure()).isEmpty();
      }
      assertThat(open("jar")).isLessThanOrEqualTo(jars);
      awaitSockets(sockets);
      assertThat(heap.getHeapMemoryUsage().getUsed() - before).isLessThan(20L << 20);
    }
  }

  @Test
  void aStartThatTheRanksWouldRefuseLeavesNoThreadAndNoDescriptor() throws Exception {
    var wrong = options(Optional.of("as fast as you like"));
    assertLeavesNothing(() -> Session.start(wrong), "as fast as you like");
  }

  /// Every operating system refuses a NUL in a command.
  @Test
  void aStartOfRanksThatFailsLeavesNoThreadAndNoDescriptor() throws Exception {
    System.setProperty("sun.awt.fontconfig", "\0");
    try {
      assertLeavesNothing(
          () -> Session.start(options(Optional.empty())), "the ranks could not be started");
    } finally {
      System.clearProperty("sun.awt.fontconfig");
    }
  }

  /// The ranks start and end before they connect.
  @Test
  void ranksThatDieAtTheirStartLeaveNoThreadAndNoDescriptor() throws Exception {
    System.setProperty("braid.rank.aot.output", "");
    try {
      assertLeavesNothing(() -> Session.start(options(Optional.empty())), "before it was ready");
    } finally {
      System.clearProperty("braid.rank.aot.output");
    }
  }

  private interface Start {
    void run();
  }

  private static void assertLeavesNothing(Start start, String reason) throws IOException {
    assertThatThrownBy(start::run).isInstanceOf(BraidException.class).hasMessageContaining(reason);
    long stores = threads("braid-store");
    var before = descriptors();
    for (int i = 0; i < TIMES; i++) {
      assertThatThrownBy(start::run)
          .isInstanceOf(BraidException.class)
          .hasMessageContaining(reason);
    }
    awaitSockets(before.getOrDefault("socket", 0));
    assertThat(open("jar")).isLessThanOrEqualTo(before.getOrDefault("jar", 0));
    assertThat(threads("braid-store")).isLessThanOrEqualTo(stores);
  }
}
