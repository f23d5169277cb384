package braid.natives.nvshmem;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.ForeignLibrary;
import braid.natives.LibC;
import braid.natives.load.Libraries;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/// Functions of NVSHMEM 3, and the two structs by which ranks join. Addresses are plain numbers,
/// because Java never reads through them.
final class NvshmemCalls {
  static final int UNIQUE_ID_BYTES = 128;
  static final int ATTRIBUTE_BYTES = 144;

  // A struct's version is 65536 times its number plus its size. Libraries with only the first
  // version of the attributes ignore the number; the second only adds the device.
  private static final int FIRST = 1 << 16;
  private static final int SECOND = 2 << 16;
  private static final int UNIQUE_ID_VERSION = FIRST + UNIQUE_ID_BYTES;
  private static final int ATTRIBUTE_VERSION = SECOND + ATTRIBUTE_BYTES;
  private static final int ARGUMENTS_VERSION = SECOND + 128;
  private static final int UNIQUE_ID_ARGUMENTS_VERSION = FIRST + 24;

  private static final int ARGUMENTS_OFFSET = 16;
  private static final int UNIQUE_ID_ARGUMENTS_OFFSET = 24;
  private static final int RANK_OFFSET = 40;
  private static final int RANKS_OFFSET = 44;
  private static final int DEVICE_OFFSET = 48;
  private static final int UNSET = -1;

  private static @Nullable NvshmemCalls loaded;
  private static long heapBytesAtLoad;

  final MethodHandle uniqueId;
  final MethodHandle setUniqueId;
  final MethodHandle initialize;
  final MethodHandle status;
  final MethodHandle finish;
  final MethodHandle allocate;
  final MethodHandle pointer;
  final MethodHandle put;
  final MethodHandle quiet;

  private NvshmemCalls(ForeignLibrary library) {
    uniqueId = library.function("nvshmemx_get_uniqueid", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    setUniqueId =
        library.function(
            "nvshmemx_set_attr_uniqueid_args",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS));
    initialize =
        library.function(
            "nvshmemx_hostlib_init_attr", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS));
    status = library.function("nvshmemx_init_status", FunctionDescriptor.of(JAVA_INT));
    finish = library.function("nvshmemx_hostlib_finalize", FunctionDescriptor.ofVoid());
    allocate = library.function("nvshmem_malloc", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));
    pointer =
        library.function("nvshmem_ptr", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT));
    put =
        library.function(
            "nvshmemx_putmem_on_stream",
            FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG));
    quiet = library.function("nvshmemx_quiet_on_stream", FunctionDescriptor.ofVoid(JAVA_LONG));
  }

  /// Loads the library, which reads its variables once, at its first call: even creating an id is
  /// too late to set the heap size. Multicast is off by default, and a group on one machine needs
  /// no network transport.
  static synchronized NvshmemCalls load(long heapBytes) {
    if (heapBytes <= 0) {
      throw new IllegalArgumentException(
          "NVSHMEM's heap must have more than 0 bytes but has " + heapBytes);
    }
    var calls = loaded;
    if (calls == null) {
      LibC.setVariable("NVSHMEM_SYMMETRIC_SIZE", Long.toString(heapBytes), true);
      LibC.setVariable("NVSHMEM_DISABLE_NVLS", "1", false);
      LibC.setVariable("NVSHMEM_REMOTE_TRANSPORT", "none", false);
      Libraries.require(Libraries.Library.CUDA_DRIVER);
      var found = Libraries.require(Libraries.Library.NVSHMEM);
      calls = new NvshmemCalls(ForeignLibrary.at(found.path()));
      heapBytesAtLoad = heapBytes;
      loaded = calls;
    } else if (heapBytes != heapBytesAtLoad) {
      throw new IllegalStateException(
          "NVSHMEM's heap has "
              + heapBytesAtLoad
              + " bytes in this process but "
              + heapBytes
              + " were requested; restart the ranks to change it");
    }
    return calls;
  }

  /// Returns an empty id with its version set.
  static MemorySegment uniqueId(Arena arena) {
    var id = arena.allocate(UNIQUE_ID_BYTES, Long.BYTES);
    id.set(JAVA_INT, 0, UNIQUE_ID_VERSION);
    return id;
  }

  /// Returns initialization attributes as the C initializer sets them.
  static MemorySegment attributes(Arena arena) {
    var attributes = arena.allocate(ATTRIBUTE_BYTES, Long.BYTES);
    attributes.set(JAVA_INT, 0, ATTRIBUTE_VERSION);
    attributes.set(JAVA_INT, ARGUMENTS_OFFSET, ARGUMENTS_VERSION);
    attributes.set(JAVA_INT, UNIQUE_ID_ARGUMENTS_OFFSET, UNIQUE_ID_ARGUMENTS_VERSION);
    attributes.set(JAVA_INT, RANK_OFFSET, UNSET);
    attributes.set(JAVA_INT, RANKS_OFFSET, UNSET);
    attributes.set(JAVA_INT, DEVICE_OFFSET, UNSET);
    return attributes;
  }
}
