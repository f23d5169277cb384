package braid.natives.ucx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/// Transfers between two workers of one process.
class UcxWorkerTest {
  private static final long LIMIT_SECONDS = 100;
  private static final int BYTES = 3 << 20;

  private final Arena arena = Arena.ofShared();

  @BeforeAll
  static void needsUcx() {
    var missing = UcxWorker.missing();
    if (System.getenv("CI") != null) {
      assertThat(missing).isEmpty();
    }
    assumeTrue(missing.isEmpty(), () -> "UCX is missing: " + missing.orElse(""));
  }

  @AfterEach
  void free() {
    arena.close();
  }

  private static void ignore(Object messageOrFailure) {}

  private static void await(CompletableFuture<?> done) throws Exception {
    done.get(LIMIT_SECONDS, TimeUnit.SECONDS);
  }

  @Test
  void aPeersMemoryIsWrittenAndReadInPieces() throws Exception {
    var own = arena.allocate(BYTES, Long.BYTES);
    var back = arena.allocate(BYTES, Long.BYTES);
    var far = arena.allocate(BYTES, Long.BYTES);
    for (int i = 0; i < BYTES; i++) {
      own.set(ValueLayout.JAVA_BYTE, i, (byte) (31 * i));
    }
    try (var owner = UcxWorker.open("owner", UcxWorkerTest::ignore);
        var worker = UcxWorker.open("worker", UcxWorkerTest::ignore);
        var mapping = owner.map(far)) {
      var peer = worker.connect(owner.address(), UcxWorkerTest::ignore);
      try (var memory = peer.memory(mapping.key())) {
        await(peer.put(memory, rows(own, far)));
        assertThat(far.mismatch(own)).isEqualTo(-1);
        await(peer.fetch(memory, rows(back, far)));
        assertThat(back.mismatch(own)).isEqualTo(-1);
        await(peer.put(memory, List.of(new UcxPeer.Piece(own.address() + 8, far.address(), 8))));
        assertThat(far.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(own.get(ValueLayout.JAVA_LONG, 8));
        assertThat(far.get(ValueLayout.JAVA_LONG, 8)).isEqualTo(own.get(ValueLayout.JAVA_LONG, 8));
      }
    }
  }

  private static List<UcxPeer.Piece> rows(MemorySegment local, MemorySegment far) {
    int rows = 96;
    long each = BYTES / rows;
    return IntStream.range(0, rows)
        .mapToObj(
            row ->
                new UcxPeer.Piece(local.address() + row * each, far.address() + row * each, each))
        .toList();
  }

  @Test
  void messagesArriveInTheirOrder() throws Exception {
    var arrived = new LinkedBlockingQueue<Integer>();
    try (var receiver =
            UcxWorker.open(
                "receiver",
                message -> arrived.add(message.get(ValueLayout.JAVA_INT_UNALIGNED, 0)));
        var sender = UcxWorker.open("sender", UcxWorkerTest::ignore)) {
      var peer = sender.connect(receiver.address(), UcxWorkerTest::ignore);
      var message = MemorySegment.ofArray(new byte[UcxWorker.MAX_MESSAGE_BYTES]);
      for (int i = 0; i < 1000; i++) {
        message.set(ValueLayout.JAVA_INT_UNALIGNED, 0, i);
        // Short and long ones in turn.
        var _ =
            peer.send(
                message
                    .asSlice(0, i % 3 == 0 ? message.byteSize() : Integer.BYTES)
                    .toArray(ValueLayout.JAVA_BYTE));
      }
      for (int i = 0; i < 1000; i++) {
        assertThat(arrived.poll(LIMIT_SECONDS, TimeUnit.SECONDS)).isEqualTo(i);
      }
      var tooLong = new byte[UcxWorker.MAX_MESSAGE_BYTES + 1];
      assertThatThrownBy(() -> peer.send(tooLong))
          .hasMessage("a message must have at most 4096 bytes but has 4097");
    }
  }

  @Test
  void aClosedPeerIsReportedAndFailsTransfers() throws Exception {
    var own = arena.allocate(64, Long.BYTES);
    var far = arena.allocate(64, Long.BYTES);
    var failures = new LinkedBlockingQueue<String>();
    var owner = UcxWorker.open("owner", UcxWorkerTest::ignore);
    try (var worker = UcxWorker.open("worker", UcxWorkerTest::ignore)) {
      var mapping = owner.map(far);
      var peer = worker.connect(owner.address(), failures::add);
      var memory = peer.memory(mapping.key());
      var piece = List.of(new UcxPeer.Piece(own.address(), far.address(), 64));
      await(peer.put(memory, piece));
      owner.close();
      assertThat(failures.poll(LIMIT_SECONDS, TimeUnit.SECONDS)).isNotNull();
      assertThatThrownBy(() -> await(peer.put(memory, piece))).cause().isInstanceOf(UcxError.class);
    } finally {
      owner.close();
    }
  }

  @Test
  void aClosedWorkerRefusesCalls() {
    var worker = UcxWorker.open("worker", UcxWorkerTest::ignore);
    worker.close();
    worker.close();
    assertThatThrownBy(() -> worker.map(arena.allocate(64)))
        .isInstanceOf(UcxError.class)
        .hasMessage("a call of a closed worker failed: the worker is closed");
  }
}
