package braid.natives.ucx;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.ucx.JucxPeer.Task;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Transfers over TCP between a worker and a process that uses JUCX, UCX's own Java binding. Both
/// load the machine's UCX, so only the bindings differ.
class JucxTest {
  private static final long LIMIT_SECONDS = 100;
  private static final int BYTES = JucxPeer.BYTES;

  /// Bounds of two parts of the memory, at no round places.
  private static final int FIRST = 5;

  private static final int MIDDLE = BYTES / 3;
  private static final int LAST = BYTES - 3;

  @TempDir Path folder;

  private final Arena arena = Arena.ofShared();
  private final MemorySegment own = arena.allocate(BYTES, Long.BYTES);
  private final LinkedBlockingQueue<byte[]> messages = new LinkedBlockingQueue<>();
  private final LinkedBlockingQueue<String> failures = new LinkedBlockingQueue<>();
  private UcxWorker worker;

  @BeforeAll
  static void needsUcx() {
    var missing = UcxWorker.missing();
    assumeTrue(missing.isEmpty(), () -> "UCX is missing: " + missing.orElse(""));
  }

  @BeforeEach
  void open() {
    for (int i = 0; i < BYTES; i++) {
      own.set(ValueLayout.JAVA_BYTE, i, initial(i));
    }
    worker =
        UcxWorker.open("worker", message -> messages.add(message.toArray(ValueLayout.JAVA_BYTE)));
  }

  @AfterEach
  void close() {
    worker.close();
    arena.close();
  }

  /// Returns a byte of this process's memory before any write.
  private static byte initial(int index) {
    return (byte) (31 * index);
  }

  /// A process of [JucxPeer]. Its worker and this one are connected both ways.
  private final class Jucx implements AutoCloseable {
    final Process process;
    final DataOutputStream requests;
    final DataInputStream replies;
    final UcxPeer peer;

    Jucx() throws IOException {
      var builder =
          new ProcessBuilder(
              Path.of(System.getProperty("java.home"), "bin", "java").toString(),
              "--enable-native-access=ALL-UNNAMED",
              "-XX:TieredStopAtLevel=1",
              "-Djava.io.tmpdir=" + folder,
              "-cp",
              System.getProperty("java.class.path"),
              JucxPeer.class.getName());
      var environment = builder.environment();
      // Networks of other tests come and go.
      environment.put("UCX_TLS", "tcp");
      environment.put("UCX_NET_DEVICES", "lo");
      // The JVM needs its own handlers of signals and its own mmap.
      environment.put("UCX_ERROR_SIGNALS", "");
      environment.put("UCX_MEM_EVENTS", "n");
      // JUCX is compiled for a newer UCX than many machines have. UCX warns of it.
      environment.put("UCX_LOG_LEVEL", "error");
      environment.put("UCX_LOG_FILE", "stderr");
      process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
      requests = new DataOutputStream(new BufferedOutputStream(process.getOutputStream()));
      replies = new DataInputStream(new BufferedInputStream(process.getInputStream()));
      var refusal = new String(JucxPeer.readFrame(replies), UTF_8);
      assumeTrue(refusal.isEmpty(), () -> "JUCX does not load here: " + refusal);
      peer = worker.connect(request(Task.ADDRESS), failures::add);
      request(Task.CONNECT, worker.address());
    }

    byte[] request(Task task, byte... arguments) throws IOException {
      JucxPeer.writeFrame(requests, task.name().getBytes(UTF_8));
      JucxPeer.writeFrame(requests, arguments);
      return JucxPeer.readFrame(replies);
    }

    byte[] request(Task task, int first, int last) throws IOException {
      return request(task, ByteBuffer.allocate(8).putInt(first).putInt(last).array());
    }

    @Override
    public void close() {
      process.destroyForcibly();
    }
  }

  /// Returns the contents of this process's memory.
  private byte[] contents() {
    return own.toArray(ValueLayout.JAVA_BYTE);
  }

  private static void await(CompletableFuture<?> done) throws Exception {
    done.get(LIMIT_SECONDS, TimeUnit.SECONDS);
  }

  /// Bytes from a first one to a last one, exclusive, in pieces of no round size.
  private List<UcxPeer.Piece> pieces(long remote, int first, int last) {
    var pieces = new ArrayList<UcxPeer.Piece>();
    int each = 100_003;
    for (int i = first; i < last; i += each) {
      pieces.add(new UcxPeer.Piece(own.address() + i, remote + i, Math.min(each, last - i)));
    }
    return pieces;
  }

  /// Asserts that the bytes from a first one to a last one, exclusive, were written by the other
  /// process, and no byte beside them.
  private static void assertWritten(
      byte[] contents, int first, int last, IntFunction<Byte> before, IntFunction<Byte> written) {
    var expected = new byte[BYTES];
    for (int i = 0; i < BYTES; i++) {
      expected[i] = (i >= first && i < last ? written : before).apply(i);
    }
    assertThat(Arrays.mismatch(contents, expected)).isEqualTo(-1);
  }

  @Test
  void memoryOfJucxIsWrittenAndRead() throws Exception {
    try (var jucx = new Jucx()) {
      var described = ByteBuffer.wrap(jucx.request(Task.MEMORY));
      long remote = described.getLong();
      var key = new byte[described.remaining()];
      described.get(key);
      try (var memory = jucx.peer.memory(key)) {
        await(jucx.peer.put(memory, pieces(remote, FIRST, MIDDLE)));
        assertWritten(
            jucx.request(Task.CONTENTS), FIRST, MIDDLE, JucxPeer::initial, JucxTest::initial);
        await(jucx.peer.fetch(memory, pieces(remote, MIDDLE, LAST)));
        assertWritten(contents(), MIDDLE, LAST, JucxTest::initial, JucxPeer::initial);
      }
    }
  }

  @Test
  void jucxWritesAndReadsMappedMemory() throws Exception {
    try (var jucx = new Jucx();
        var mapping = worker.map(own)) {
      var key = mapping.key();
      var described = ByteBuffer.allocate(Long.BYTES + key.length);
      jucx.request(Task.OPEN, described.putLong(own.address()).put(key).array());
      jucx.request(Task.PUT, FIRST, MIDDLE);
      assertWritten(contents(), FIRST, MIDDLE, JucxTest::initial, JucxPeer::initial);
      jucx.request(Task.FETCH, MIDDLE, LAST);
      assertWritten(
          jucx.request(Task.CONTENTS), MIDDLE, LAST, JucxPeer::initial, JucxTest::initial);
    }
  }

  @Test
  void messagesArriveInTheirOrder() throws Exception {
    try (var jucx = new Jucx()) {
      int count = 100;
      for (int i = 0; i < count; i++) {
        await(jucx.peer.send(message(i)));
        jucx.request(Task.SEND, message(count + i));
      }
      for (int i = 0; i < count; i++) {
        assertThat(jucx.request(Task.RECEIVE)).isEqualTo(message(i));
        assertThat(messages.poll(LIMIT_SECONDS, TimeUnit.SECONDS)).isEqualTo(message(count + i));
      }
    }
  }

  /// Returns the longest message, or a short one.
  private static byte[] message(int number) {
    var message = new byte[number % 3 == 0 ? UcxWorker.MAX_MESSAGE_BYTES : Integer.BYTES];
    Arrays.fill(message, (byte) (7 * number));
    return ByteBuffer.wrap(message).putInt(number).array();
  }

  @Test
  void aKilledJucxIsReported() throws Exception {
    try (var jucx = new Jucx()) {
      await(jucx.peer.send(message(0)));
      assertThat(jucx.request(Task.RECEIVE)).isEqualTo(message(0));
      jucx.process.destroyForcibly();
      assertThat(failures.poll(LIMIT_SECONDS, TimeUnit.SECONDS)).isNotNull();
    }
  }

  @Test
  void aJucxThatClosesEverythingIsReported() throws Exception {
    try (var jucx = new Jucx()) {
      await(jucx.peer.send(message(0)));
      assertThat(jucx.request(Task.RECEIVE)).isEqualTo(message(0));
      jucx.requests.close();
      assertThat(jucx.process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)).isTrue();
      assertThat(jucx.process.exitValue()).isZero();
      assertThat(failures.poll(LIMIT_SECONDS, TimeUnit.SECONDS)).isNotNull();
    }
  }
}
