package braid.natives.ucx;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.ForeignLibrary;
import braid.natives.LibC;
import braid.natives.load.Libraries;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// One process's end of UCX: it maps memory for others, connects to their workers, and transfers
/// bytes from and to the memory that they have mapped, without their doing.
///
/// Calls may come from any thread; a lock admits one at a time. A thread of the worker's own makes
/// progress: it answers peers, completes transfers, calls the receiver of messages, and sleeps on
/// the worker's descriptor while nothing happens. A thread that starts a transfer wakes it.
///
/// Messages to one peer arrive in their order. A transfer and a message have no order unless the
/// transfer has completed, which means that its bytes are in the peer's memory.
@SuppressWarnings("restricted")
public final class UcxWorker implements AutoCloseable {
  /// Size limit of a message, so that it travels in one piece.
  public static final int MAX_MESSAGE_BYTES = 4096;

  /// Calls of progress between two chances for other threads.
  private static final int TURNS = 32;

  private static final int SLEEP_MILLISECONDS = 1000;
  private static final long CLOSE_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
  private static final int MESSAGE = 0;

  /// Options of calls, which no call changes.
  private static final MemorySegment HOST_MEMORY = UcxCalls.hostMemory(Arena.global());

  private static final MemorySegment EAGER = UcxCalls.eager(Arena.global());
  private static final MemorySegment FORCED = UcxCalls.forced(Arena.global());
  private static final MemorySegment PLAIN = UcxCalls.plain(Arena.global());

  private final UcxCalls calls;
  private final Consumer<MemorySegment> receiver;
  private final ReentrantLock lock = new ReentrantLock(true);
  private final Arena arena = Arena.ofShared();
  private final MemorySegment context;
  private final MemorySegment worker;
  private final MemorySegment onFailure;
  private final int descriptor;
  private final byte[] address;
  private final List<Running> running = new ArrayList<>();
  private final Map<Long, UcxPeer> peers = new HashMap<>();
  private final Thread thread;
  private long peersMade;
  private volatile boolean closing;
  private boolean closed;

  /// A request of the library that runs, with what must live as long.
  private record Running(long request, CompletableFuture<Void> done, @Nullable Object kept) {}

  private UcxWorker(String name, Consumer<MemorySegment> receiver) {
    this.calls = UcxCalls.load();
    this.receiver = receiver;
    try {
      context = calls.context(arena);
      worker = calls.worker(context, arena);
      calls.receiver(worker, stub("received", RECEIVED), arena);
      onFailure = stub("failed", FAILED);
      var number = arena.allocate(JAVA_INT);
      calls.check("ucp_worker_get_efd", (int) calls.eventDescriptor.invokeExact(worker, number));
      descriptor = number.get(JAVA_INT, 0);
      address = readAddress();
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
    thread = Thread.ofPlatform().daemon().name(name).start(this::run);
  }

  /// Opens a worker.
  ///
  /// @param name name of its thread
  /// @param receiver takes each message, on that thread, valid until it returns; must not wait
  public static UcxWorker open(String name, Consumer<MemorySegment> receiver) {
    return new UcxWorker(name, receiver);
  }

  /// Returns why UCX is not available; empty if it is.
  public static Optional<String> missing() {
    return Libraries.missing(Libraries.Library.UCX);
  }

  private static final FunctionDescriptor RECEIVED =
      FunctionDescriptor.of(
          JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final FunctionDescriptor FAILED =
      FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG, JAVA_INT);

  private MemorySegment stub(String method, FunctionDescriptor descriptor)
      throws ReflectiveOperationException {
    MethodType type = descriptor.toMethodType();
    return Linker.nativeLinker()
        .upcallStub(
            MethodHandles.lookup().findVirtual(UcxWorker.class, method, type).bindTo(this),
            descriptor,
            arena);
  }

  /// Called by the library with a message. An exception here would end the process.
  @SuppressWarnings("unused") // by its name
  private int received(
      long argument, long header, long headerBytes, long data, long bytes, long parameters) {
    try {
      receiver.accept(MemorySegment.ofAddress(data).reinterpret(bytes));
    } catch (RuntimeException | Error e) {
      var handler = thread.getUncaughtExceptionHandler();
      if (handler != null) {
        handler.uncaughtException(thread, e);
      }
    }
    return UcxCalls.OK;
  }

  /// Called by the library when a peer does not answer any more.
  @SuppressWarnings("unused") // by its name
  private void failed(long argument, long endpoint, int status) {
    var peer = peers.get(argument);
    if (peer != null) {
      peer.failed(calls.text(status));
    }
  }

  private byte[] readAddress() throws Throwable {
    try (var local = Arena.ofConfined()) {
      var start = local.allocate(ADDRESS);
      var length = local.allocate(JAVA_LONG);
      calls.check(
          "ucp_worker_get_address", (int) calls.workerAddress.invokeExact(worker, start, length));
      var own = start.get(ADDRESS, 0);
      var bytes = own.reinterpret(length.get(JAVA_LONG, 0)).toArray(JAVA_BYTE);
      calls.releaseAddress.invokeExact(worker, own);
      return bytes;
    }
  }

  /// Returns the address by which other workers connect to this one.
  public byte[] address() {
    return address.clone();
  }

  /// Memory of this process that others may read and write until it is closed.
  public final class Mapping implements AutoCloseable {
    private final MemorySegment handle;
    private final byte[] key;
    private boolean unmapped;

    private Mapping(MemorySegment handle, byte[] key) {
      this.handle = handle;
      this.key = key;
    }

    /// Returns the key with which others reach the memory.
    public byte[] key() {
      return key.clone();
    }

    @Override
    public void close() {
      locked(
          () -> {
            if (!unmapped && !closed) {
              unmapped = true;
              calls.check("ucp_mem_unmap", (int) calls.unmap.invokeExact(context, handle));
            }
          });
    }
  }

  /// Maps memory for others. It must stay until the mapping is closed.
  public Mapping map(MemorySegment memory) {
    var mapped = new ArrayList<Mapping>();
    locked(
        () -> {
          checkOpen();
          try (var local = Arena.ofConfined()) {
            var handle = calls.map(context, memory, local);
            var start = local.allocate(ADDRESS);
            var length = local.allocate(JAVA_LONG);
            calls.check(
                "ucp_rkey_pack", (int) calls.packKey.invokeExact(context, handle, start, length));
            var packed = start.get(ADDRESS, 0);
            var key = packed.reinterpret(length.get(JAVA_LONG, 0)).toArray(JAVA_BYTE);
            calls.releaseKeyBuffer.invokeExact(packed);
            mapped.add(new Mapping(handle, key));
          }
        });
    return mapped.getFirst();
  }

  /// Connects to a worker, without waiting for it.
  ///
  /// @param failed called once, on the worker's thread, when the peer does not answer any more,
  ///   with UCX's words
  public UcxPeer connect(byte[] peerAddress, Consumer<String> failed) {
    var connected = new ArrayList<UcxPeer>();
    locked(
        () -> {
          checkOpen();
          try (var local = Arena.ofConfined()) {
            long number = ++peersMade;
            var endpoint =
                calls.endpoint(
                    worker, local.allocateFrom(JAVA_BYTE, peerAddress), onFailure, number, local);
            var peer = new UcxPeer(this, number, endpoint, failed);
            peers.put(number, peer);
            connected.add(peer);
          }
        });
    return connected.getFirst();
  }

  /// A call of the library.
  @FunctionalInterface
  interface Body {
    void run() throws Throwable;
  }

  /// Runs a body that no other call of the worker interleaves with.
  void locked(Body body) {
    lock.lock();
    try {
      body.run();
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    } finally {
      lock.unlock();
    }
  }

  private void checkOpen() {
    if (closed) {
      throw new UcxError("a call of a closed worker", "the worker is closed");
    }
  }

  MemorySegment unpackedKey(MemorySegment endpoint, byte[] key) throws Throwable {
    checkOpen();
    try (var local = Arena.ofConfined()) {
      var handle = local.allocate(ADDRESS);
      calls.check(
          "ucp_ep_rkey_unpack",
          (int) calls.unpackKey.invokeExact(endpoint, local.allocateFrom(JAVA_BYTE, key), handle));
      return handle.get(ADDRESS, 0);
    }
  }

  void destroyKey(MemorySegment key) throws Throwable {
    if (!closed) {
      calls.destroyKey.invokeExact(key);
    }
  }

  CompletableFuture<Void> put(
      MemorySegment endpoint, long from, long bytes, long remote, MemorySegment key)
      throws Throwable {
    checkOpen();
    return following(
        "ucp_put_nbx",
        (long) calls.put.invokeExact(endpoint, from, bytes, remote, key, HOST_MEMORY),
        null);
  }

  CompletableFuture<Void> fetch(
      MemorySegment endpoint, long target, long bytes, long remote, MemorySegment key)
      throws Throwable {
    checkOpen();
    return following(
        "ucp_get_nbx",
        (long) calls.fetch.invokeExact(endpoint, target, bytes, remote, key, HOST_MEMORY),
        null);
  }

  CompletableFuture<Void> flush(MemorySegment endpoint) throws Throwable {
    checkOpen();
    return following("ucp_ep_flush_nbx", (long) calls.flush.invokeExact(endpoint, PLAIN), null);
  }

  CompletableFuture<Void> send(MemorySegment endpoint, byte[] message) throws Throwable {
    checkOpen();
    var kept = Arena.ofAuto().allocateFrom(JAVA_BYTE, message);
    return following(
        "ucp_am_send_nbx",
        (long)
            calls.send.invokeExact(
                endpoint, MESSAGE, MemorySegment.NULL, 0L, kept, kept.byteSize(), EAGER),
        kept);
  }

  void close(UcxPeer peer, MemorySegment endpoint) throws Throwable {
    if (!closed) {
      peers.remove(peer.number());
      var _ =
          following(
              "ucp_ep_close_nbx", (long) calls.closeEndpoint.invokeExact(endpoint, FORCED), null);
    }
  }

  private CompletableFuture<Void> following(String call, long result, @Nullable Object kept) {
    if (result == UcxCalls.OK) {
      return CompletableFuture.completedFuture(null);
    }
    if (UcxCalls.isError(result)) {
      return CompletableFuture.failedFuture(new UcxError(call, calls.text((int) result)));
    }
    var done = new CompletableFuture<Void>();
    running.add(new Running(result, done, kept));
    return done;
  }

  /// Wakes the worker's thread, after a call that goes on.
  void wake() throws Throwable {
    if (!closed) {
      calls.check("ucp_worker_signal", (int) calls.signal.invokeExact(worker));
    }
  }

  /// Completes requests that have ended.
  private void settle() throws Throwable {
    for (int i = running.size() - 1; i >= 0; i--) {
      var each = running.get(i);
      int status = (int) calls.requestStatus.invokeExact(each.request());
      if (status != UcxCalls.IN_PROGRESS) {
        running.remove(i);
        calls.freeRequest.invokeExact(each.request());
        if (status == UcxCalls.OK) {
          each.done().complete(null);
        } else {
          each.done().completeExceptionally(new UcxError("a transfer", calls.text(status)));
        }
      }
    }
  }

  /// Makes progress. Returns whether the thread may sleep on the descriptor.
  private boolean advance() throws Throwable {
    for (int i = 0; i < TURNS; i++) {
      if ((int) calls.progress.invokeExact(worker) == 0) {
        settle();
        return (int) calls.arm.invokeExact(worker) == UcxCalls.OK;
      }
    }
    settle();
    return false;
  }

  private void run() {
    var sleeps = new boolean[1];
    while (!closing) {
      locked(() -> sleeps[0] = advance());
      if (sleeps[0] && !closing) {
        LibC.awaitReadable(descriptor, SLEEP_MILLISECONDS);
      }
    }
  }

  /// Ends all connections and the thread. Transfers that run fail. Afterwards no peer writes to
  /// memory of this process by this worker. Idempotent.
  @Override
  public void close() {
    if (closing) {
      return;
    }
    closing = true;
    locked(this::wake);
    boolean interrupted = false;
    while (thread.isAlive()) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    locked(
        () -> {
          for (var peer : List.copyOf(peers.values())) {
            peer.closeNow();
          }
          long end = System.nanoTime() + CLOSE_NANOS;
          while (!running.isEmpty() && end - System.nanoTime() > 0) {
            var _ = (int) calls.progress.invokeExact(worker);
            settle();
          }
          closed = true;
          for (var each : running) {
            each.done().completeExceptionally(new UcxError("a transfer", "the worker was closed"));
          }
          running.clear();
          calls.destroyWorker.invokeExact(worker);
          calls.cleanUp.invokeExact(context);
        });
    arena.close();
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
