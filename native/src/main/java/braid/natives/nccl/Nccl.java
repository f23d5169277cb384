package braid.natives.nccl;

import static org.bytedeco.cuda.global.nccl.ncclGetErrorString;
import static org.bytedeco.cuda.global.nccl.ncclGetLastError;
import static org.bytedeco.cuda.global.nccl.ncclGetUniqueId;
import static org.bytedeco.cuda.global.nccl.ncclGetVersion;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;

import braid.natives.ForeignLibrary;
import braid.natives.LibC;
import braid.natives.cuda.GpuError;
import braid.natives.load.Feature;
import braid.natives.load.Libraries;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.cuda.nccl.ncclUniqueId;
import org.bytedeco.javacpp.Loader;
import org.jspecify.annotations.Nullable;

/// The NCCL library: its version, its functions, and its errors.
public final class Nccl {
  static final int UNIQUE_ID_BYTES = 128;

  /// NCCL's data types and their numbers.
  public enum Type {
    FP32(org.bytedeco.cuda.global.nccl.ncclFloat32, 4),
    BF16(org.bytedeco.cuda.global.nccl.ncclBfloat16, 2),
    FP16(org.bytedeco.cuda.global.nccl.ncclFloat16, 2),
    INT8(org.bytedeco.cuda.global.nccl.ncclInt8, 1),
    E4M3(org.bytedeco.cuda.global.nccl.ncclFloat8e4m3, 1),
    E5M2(org.bytedeco.cuda.global.nccl.ncclFloat8e5m2, 1);

    private final int number;
    private final int bytes;

    Type(int number, int bytes) {
      this.number = number;
      this.bytes = bytes;
    }

    int number() {
      return number;
    }

    public int bytes() {
      return bytes;
    }
  }

  /// The library's functions and version.
  private record Loaded(ForeignLibrary symbols, int version) {}

  private static @Nullable Loaded loaded;

  private Nccl() {}

  /// Version of NCCL: 22809 is 2.28.9.
  public static int version() {
    return load().version;
  }

  /// Loads NCCL once. Multicast is off by default: NCCL would enable it, and reads the variable at
  /// its first use.
  private static synchronized Loaded load() {
    var current = loaded;
    if (current == null) {
      LibC.setVariable("NCCL_NVLS_ENABLE", "0", false);
      Libraries.require(Libraries.Library.CUDA_DRIVER);
      Libraries.require(Libraries.Library.CUDA_RUNTIME);
      var symbols = ForeignLibrary.at(Libraries.require(Libraries.Library.NCCL).path());
      Loader.load(org.bytedeco.cuda.global.nccl.class);
      var version = new int[1];
      check("ncclGetVersion", ncclGetVersion(version), null, "");
      current = new Loaded(symbols, version[0]);
      loaded = current;
    }
    return current;
  }

  /// Lets NCCL take this process for one of a host of its own, since it refuses several processes
  /// of a host on one GPU. Hosts talk over sockets of the loopback interface. Call it before NCCL's
  /// first use.
  ///
  /// @param host name that the processes of a host share
  public static void poseAsHost(String host) {
    LibC.setVariable("NCCL_HOSTID", host, true);
    LibC.setVariable("NCCL_SOCKET_IFNAME", "lo", false);
    LibC.setVariable("NCCL_IB_DISABLE", "1", false);
  }

  /// Creates the id by which all ranks join. This opens a socket in this process, which the others
  /// must reach until all have joined.
  public static byte[] uniqueId() {
    version();
    try (var id = new ncclUniqueId()) {
      check("ncclGetUniqueId", ncclGetUniqueId(id), null, "");
      var bytes = new byte[UNIQUE_ID_BYTES];
      id.internal().get(bytes);
      return bytes;
    }
  }

  static boolean has(String function) {
    return load().symbols.has(function);
  }

  /// Throws if the loaded library is too old for the feature, or lacks its function; calling that
  /// would end the process.
  static void need(Feature feature, String function) {
    feature.require(Feature.tenThousands(version()));
    if (!has(function)) {
      throw new UnsupportedOperationException(
          "%s: needs %s, which NCCL %s lacks; %s"
              .formatted(
                  feature.title(),
                  function,
                  Feature.tenThousands(version()),
                  feature.component().remedy()));
    }
  }

  static void check(String call, int code, @Nullable ncclComm communicator, String place) {
    if (code != ncclSuccess) {
      throw error(call, code, communicator, place);
    }
  }

  /// Returns an error with NCCL's text for the code and its last warning, which is more specific.
  static GpuError error(String call, int code, @Nullable ncclComm communicator, String place) {
    var general = ncclGetErrorString(code).getString();
    var last = ncclGetLastError(communicator).getString().strip();
    return new GpuError(
        call,
        code,
        name(code),
        last.isEmpty() ? general : general + ": " + last,
        place,
        remedy(code));
  }

  static String name(int code) {
    return switch (code) {
      case 0 -> "ncclSuccess";
      case 1 -> "ncclUnhandledCudaError";
      case 2 -> "ncclSystemError";
      case 3 -> "ncclInternalError";
      case 4 -> "ncclInvalidArgument";
      case 5 -> "ncclInvalidUsage";
      case 6 -> "ncclRemoteError";
      case 7 -> "ncclInProgress";
      case 8 -> "ncclTimeout";
      default -> "ncclResult " + code;
    };
  }

  static String remedy(int code) {
    return switch (code) {
      case 1, 2, 3 -> "set NCCL_DEBUG=WARN to see NCCL's log";
      case 6 -> "check the other ranks: one of them has failed or ended";
      default -> "";
    };
  }
}
