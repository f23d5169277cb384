package braid.natives.ucx;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/// Another process, as a [UcxWorker] is connected to it.
public final class UcxPeer implements AutoCloseable {
  private final UcxWorker worker;
  private final long number;
  private final MemorySegment endpoint;
  private final Consumer<String> onFailure;
  private boolean closed;

  UcxPeer(UcxWorker worker, long number, MemorySegment endpoint, Consumer<String> onFailure) {
    this.worker = worker;
    this.number = number;
    this.endpoint = endpoint;
    this.onFailure = onFailure;
  }

  long number() {
    return number;
  }

  void failed(String status) {
    onFailure.accept(status);
  }

  /// Memory that the peer has mapped.
  public final class Memory implements AutoCloseable {
    private final MemorySegment key;
    private boolean destroyed;

    private Memory(MemorySegment key) {
      this.key = key;
    }

    @Override
    public void close() {
      worker.locked(
          () -> {
            if (!destroyed && !closed) {
              destroyed = true;
              worker.destroyKey(key);
            }
          });
    }
  }

  /// Returns the memory that the peer has mapped with that key.
  public Memory memory(byte[] key) {
    var unpacked = new ArrayList<Memory>();
    worker.locked(() -> unpacked.add(new Memory(worker.unpackedKey(endpoint, key))));
    return unpacked.getFirst();
  }

  /// Bytes that lie at an address of this process and at one of the peer.
  public record Piece(long local, long remote, long bytes) {}

  /// Writes to the peer's memory. Completed when the bytes are there.
  public CompletableFuture<Void> put(Memory memory, List<Piece> pieces) {
    return started(
        () -> {
          var all = new ArrayList<CompletableFuture<Void>>();
          for (var piece : pieces) {
            all.add(worker.put(endpoint, piece.local(), piece.bytes(), piece.remote(), memory.key));
          }
          all.add(worker.flush(endpoint));
          return all;
        });
  }

  /// Reads from the peer's memory. Completed when the bytes are here.
  public CompletableFuture<Void> fetch(Memory memory, List<Piece> pieces) {
    return started(
        () -> {
          var all = new ArrayList<CompletableFuture<Void>>();
          for (var piece : pieces) {
            all.add(
                worker.fetch(endpoint, piece.local(), piece.bytes(), piece.remote(), memory.key));
          }
          return all;
        });
  }

  /// Sends a message of at most [UcxWorker#MAX_MESSAGE_BYTES]. Completed when this process no
  /// longer has it, which is not yet its arrival.
  public CompletableFuture<Void> send(byte[] message) {
    if (message.length > UcxWorker.MAX_MESSAGE_BYTES) {
      throw new IllegalArgumentException(
          "a message must have at most %d bytes but has %d"
              .formatted(UcxWorker.MAX_MESSAGE_BYTES, message.length));
    }
    return started(() -> List.of(worker.send(endpoint, message)));
  }

  /// Completed when everything that was sent before has arrived in the peer's process.
  public CompletableFuture<Void> flush() {
    return started(() -> List.of(worker.flush(endpoint)));
  }

  @FunctionalInterface
  private interface Start {
    List<CompletableFuture<Void>> run() throws Throwable;
  }

  private CompletableFuture<Void> started(Start start) {
    var all = new ArrayList<CompletableFuture<Void>>();
    worker.locked(
        () -> {
          if (closed) {
            all.add(
                CompletableFuture.failedFuture(new UcxError("a transfer", "connection closed")));
            return;
          }
          all.addAll(start.run());
          if (!all.stream().allMatch(CompletableFuture::isDone)) {
            worker.wake();
          }
        });
    return all.size() == 1
        ? all.getFirst()
        : CompletableFuture.allOf(all.toArray(CompletableFuture[]::new));
  }

  /// Ends the connection at once. Transfers that run fail.
  @Override
  public void close() {
    worker.locked(
        () -> {
          closeNow();
          worker.wake();
        });
  }

  void closeNow() throws Throwable {
    if (!closed) {
      closed = true;
      worker.close(this, endpoint);
    }
  }
}
