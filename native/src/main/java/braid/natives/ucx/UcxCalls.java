package braid.natives.ucx;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.ForeignLibrary;
import braid.natives.load.Libraries;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/// Functions of UCX 1 that are used here, and the structs that they take. A struct names the fields
/// that are set by a mask, so later versions of the library read it too.
final class UcxCalls {
  static final int OK = 0;
  static final int IN_PROGRESS = 1;
  static final int BUSY = -15;

  /// Results above it, as unsigned numbers, are errors instead of requests.
  private static final long FIRST_ERROR = -100;

  private static final int API_MAJOR = 1;

  /// The first version with active messages that are sent by `ucp_am_send_nbx`.
  private static final int API_MINOR = 10;

  private static final int MOST_TEXT_BYTES = 256;

  private static @Nullable UcxCalls loaded;

  final MethodHandle initialize;
  final MethodHandle cleanUp;
  final MethodHandle createWorker;
  final MethodHandle destroyWorker;
  final MethodHandle workerAddress;
  final MethodHandle releaseAddress;
  final MethodHandle eventDescriptor;
  final MethodHandle arm;
  final MethodHandle signal;
  final MethodHandle progress;
  final MethodHandle setReceiver;
  final MethodHandle map;
  final MethodHandle unmap;
  final MethodHandle packKey;
  final MethodHandle releaseKeyBuffer;
  final MethodHandle unpackKey;
  final MethodHandle destroyKey;
  final MethodHandle createEndpoint;
  final MethodHandle closeEndpoint;
  final MethodHandle put;
  final MethodHandle fetch;
  final MethodHandle flush;
  final MethodHandle send;
  final MethodHandle requestStatus;
  final MethodHandle freeRequest;
  private final MethodHandle statusText;

  private UcxCalls(ForeignLibrary ucp, ForeignLibrary ucs) {
    var transfer =
        FunctionDescriptor.of(
            JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS);
    initialize =
        ucp.function(
            "ucp_init_version",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
    cleanUp = ucp.function("ucp_cleanup", FunctionDescriptor.ofVoid(ADDRESS));
    createWorker =
        ucp.function(
            "ucp_worker_create", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
    destroyWorker = ucp.function("ucp_worker_destroy", FunctionDescriptor.ofVoid(ADDRESS));
    workerAddress =
        ucp.function(
            "ucp_worker_get_address", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
    releaseAddress =
        ucp.function("ucp_worker_release_address", FunctionDescriptor.ofVoid(ADDRESS, ADDRESS));
    eventDescriptor =
        ucp.function("ucp_worker_get_efd", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
    arm = ucp.function("ucp_worker_arm", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    signal = ucp.function("ucp_worker_signal", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    progress = ucp.function("ucp_worker_progress", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    setReceiver =
        ucp.function(
            "ucp_worker_set_am_recv_handler", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
    map = ucp.function("ucp_mem_map", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
    unmap = ucp.function("ucp_mem_unmap", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
    packKey =
        ucp.function(
            "ucp_rkey_pack", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS));
    releaseKeyBuffer = ucp.function("ucp_rkey_buffer_release", FunctionDescriptor.ofVoid(ADDRESS));
    unpackKey =
        ucp.function(
            "ucp_ep_rkey_unpack", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
    destroyKey = ucp.function("ucp_rkey_destroy", FunctionDescriptor.ofVoid(ADDRESS));
    createEndpoint =
        ucp.function("ucp_ep_create", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
    closeEndpoint =
        ucp.function("ucp_ep_close_nbx", FunctionDescriptor.of(JAVA_LONG, ADDRESS, ADDRESS));
    put = ucp.function("ucp_put_nbx", transfer);
    fetch = ucp.function("ucp_get_nbx", transfer);
    flush = ucp.function("ucp_ep_flush_nbx", FunctionDescriptor.of(JAVA_LONG, ADDRESS, ADDRESS));
    send =
        ucp.function(
            "ucp_am_send_nbx",
            FunctionDescriptor.of(
                JAVA_LONG, ADDRESS, JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS));
    requestStatus =
        ucp.function("ucp_request_check_status", FunctionDescriptor.of(JAVA_INT, JAVA_LONG));
    freeRequest = ucp.function("ucp_request_free", FunctionDescriptor.ofVoid(JAVA_LONG));
    statusText = ucs.function("ucs_status_string", FunctionDescriptor.of(ADDRESS, JAVA_INT));
  }

  /// Loads the library.
  static synchronized UcxCalls load() {
    var calls = loaded;
    if (calls == null) {
      var path = Libraries.require(Libraries.Library.UCX).path();
      calls =
          new UcxCalls(
              ForeignLibrary.at(path), ForeignLibrary.at(path.resolveSibling("libucs.so.0")));
      loaded = calls;
    }
    return calls;
  }

  void check(String call, int status) {
    if (status < OK) {
      throw new UcxError(call, text(status));
    }
  }

  static boolean isError(long result) {
    return Long.compareUnsigned(result, FIRST_ERROR) >= 0;
  }

  @SuppressWarnings("restricted") // a constant text of the library
  String text(int status) {
    try {
      return ((MemorySegment) statusText.invokeExact(status))
          .reinterpret(MOST_TEXT_BYTES)
          .getString(0);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Creates a context for one-sided transfers, active messages and waits by a descriptor.
  MemorySegment context(Arena arena) throws Throwable {
    var parameters = arena.allocate(128, Long.BYTES);
    long features = 1;
    parameters.set(JAVA_LONG, 0, features);
    long oneSided = 1 << 1;
    long wakeUp = 1 << 4;
    long activeMessages = 1 << 6;
    parameters.set(JAVA_LONG, 8, oneSided | wakeUp | activeMessages);
    var context = arena.allocate(ADDRESS);
    check(
        "ucp_init_version",
        (int)
            initialize.invokeExact(API_MAJOR, API_MINOR, parameters, MemorySegment.NULL, context));
    return context.get(ADDRESS, 0);
  }

  /// Creates a worker whose calls are made by one thread at a time.
  MemorySegment worker(MemorySegment context, Arena arena) throws Throwable {
    var parameters = arena.allocate(256, Long.BYTES);
    long threadMode = 1;
    parameters.set(JAVA_LONG, 0, threadMode);
    int serialized = 1;
    parameters.set(JAVA_INT, 8, serialized);
    var worker = arena.allocate(ADDRESS);
    check("ucp_worker_create", (int) createWorker.invokeExact(context, parameters, worker));
    return worker.get(ADDRESS, 0);
  }

  /// Sets the receiver of active messages with number 0, which arrive whole.
  void receiver(MemorySegment worker, MemorySegment callback, Arena arena) throws Throwable {
    var parameters = arena.allocate(64, Long.BYTES);
    long id = 1;
    long flags = 1 << 1;
    long function = 1 << 2;
    parameters.set(JAVA_LONG, 0, id | flags | function);
    int whole = 1;
    parameters.set(JAVA_INT, 12, whole);
    parameters.set(ADDRESS, 16, callback);
    check("ucp_worker_set_am_recv_handler", (int) setReceiver.invokeExact(worker, parameters));
  }

  MemorySegment map(MemorySegment context, MemorySegment memory, Arena arena) throws Throwable {
    var parameters = arena.allocate(64, Long.BYTES);
    long address = 1;
    long length = 1 << 1;
    parameters.set(JAVA_LONG, 0, address | length);
    parameters.set(JAVA_LONG, 8, memory.address());
    parameters.set(JAVA_LONG, 16, memory.byteSize());
    var handle = arena.allocate(ADDRESS);
    check("ucp_mem_map", (int) map.invokeExact(context, parameters, handle));
    return handle.get(ADDRESS, 0);
  }

  /// Creates an endpoint whose failures are reported to the callback, with an argument.
  MemorySegment endpoint(
      MemorySegment worker,
      MemorySegment address,
      MemorySegment callback,
      long argument,
      Arena arena)
      throws Throwable {
    var parameters = arena.allocate(192, Long.BYTES);
    long remoteAddress = 1;
    long errorMode = 1 << 1;
    long errorHandler = 1 << 2;
    parameters.set(JAVA_LONG, 0, remoteAddress | errorMode | errorHandler);
    parameters.set(ADDRESS, 8, address);
    int peer = 1;
    parameters.set(JAVA_INT, 16, peer);
    parameters.set(ADDRESS, 24, callback);
    parameters.set(JAVA_LONG, 32, argument);
    var endpoint = arena.allocate(ADDRESS);
    check("ucp_ep_create", (int) createEndpoint.invokeExact(worker, parameters, endpoint));
    return endpoint.get(ADDRESS, 0);
  }

  /// Options of a transfer of the host's memory.
  static MemorySegment hostMemory(Arena arena) {
    return options(arena, 1 << 6, 0);
  }

  /// Options of a message that is sent at once, without a handshake.
  static MemorySegment eager(Arena arena) {
    return options(arena, 1 << 4, 1 << 1);
  }

  /// Options that close an endpoint without its peer.
  static MemorySegment forced(Arena arena) {
    return options(arena, 1 << 4, 1);
  }

  static MemorySegment plain(Arena arena) {
    return options(arena, 0, 0);
  }

  private static MemorySegment options(Arena arena, int mask, int flags) {
    var options = arena.allocate(128, Long.BYTES);
    options.set(JAVA_INT, 0, mask);
    options.set(JAVA_INT, 4, flags);
    return options;
  }
}
