package braid.natives.profiling;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.ForeignLibrary;
import braid.natives.cuda.GpuError;
import braid.natives.load.Feature;
import braid.natives.load.Libraries;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/// Functions of CUPTI that are used here, and its errors. The library is loaded once and stays
/// loaded.
final class CuptiCalls {
  static final int SUCCESS = 0;
  static final int NO_MORE_RECORDS = 12;
  private static final int INSUFFICIENT_PRIVILEGES = 35;
  private static final int MULTIPLE_SUBSCRIBERS = 39;

  private static @Nullable CuptiCalls loaded;

  final MethodHandle registerCallbacks;
  final MethodHandle enable;
  final MethodHandle disable;
  final MethodHandle flush;
  final MethodHandle nextRecord;
  final MethodHandle droppedRecords;
  final MethodHandle push;
  final MethodHandle pop;
  final MethodHandle subscribe;
  final MethodHandle unsubscribe;
  final MethodHandle enableCallback;
  final MethodHandle graphNodeId;
  final MethodHandle streamId;
  private final MethodHandle timestamp;
  private final MethodHandle resultString;
  private final int version;

  private CuptiCalls(ForeignLibrary library) {
    registerCallbacks =
        library.function(
            "cuptiActivityRegisterCallbacks", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
    enable = library.function("cuptiActivityEnable", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    disable = library.function("cuptiActivityDisable", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    flush = library.function("cuptiActivityFlushAll", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    nextRecord =
        library.function(
            "cuptiActivityGetNextRecord",
            FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS));
    droppedRecords =
        library.function(
            "cuptiActivityGetNumDroppedRecords",
            FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, ADDRESS));
    push =
        library.function(
            "cuptiActivityPushExternalCorrelationId",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG));
    pop =
        library.function(
            "cuptiActivityPopExternalCorrelationId",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS));
    subscribe =
        library.function(
            "cuptiSubscribe", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
    unsubscribe = library.function("cuptiUnsubscribe", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    enableCallback =
        library.function(
            "cuptiEnableCallback",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT));
    graphNodeId =
        library.function("cuptiGetGraphNodeId", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
    streamId =
        library.function(
            "cuptiGetStreamIdEx",
            FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_BYTE, ADDRESS));
    timestamp = library.function("cuptiGetTimestamp", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    resultString =
        library.function(
            "cuptiGetResultString", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS));
    version = versionOf(library);
  }

  /// @throws UnsupportedOperationException if the library is too old
  static synchronized CuptiCalls load() {
    var calls = loaded;
    if (calls == null) {
      calls = new CuptiCalls(ForeignLibrary.at(Libraries.require(Libraries.Library.CUPTI).path()));
      loaded = calls;
    }
    Feature.PROFILES.require(Feature.tenThousands(calls.version));
    return calls;
  }

  int version() {
    return version;
  }

  /// Reads CUPTI's clock, which its records use.
  long timestamp(MemorySegment room) {
    try {
      check("cuptiGetTimestamp", (int) timestamp.invokeExact(room), "");
      return room.get(JAVA_LONG, 0);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  void check(String call, int code, String place) {
    if (code != SUCCESS) {
      var name = name(code);
      throw new GpuError(call, code, name, "CUPTI gives no reason", place, remedy(code));
    }
  }

  String name(int code) {
    try (var arena = Arena.ofConfined()) {
      var slot = arena.allocate(ADDRESS);
      var known = (int) resultString.invokeExact(code, slot);
      return known == SUCCESS ? text(slot.get(ADDRESS, 0)) : "CUptiResult " + code;
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  @SuppressWarnings("restricted")
  static String text(MemorySegment address) {
    return address.address() == 0 ? "" : address.reinterpret(Long.MAX_VALUE).getString(0);
  }

  private static String remedy(int code) {
    return switch (code) {
      case INSUFFICIENT_PRIVILEGES -> "ask the machine's owner to allow profiling for this user";
      case MULTIPLE_SUBSCRIBERS -> "end the other profiler or debugger of this process";
      default -> "";
    };
  }

  private static int versionOf(ForeignLibrary library) {
    var call = library.function("cuptiGetVersion", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    try (var arena = Arena.ofConfined()) {
      var number = arena.allocate(JAVA_INT);
      var code = (int) call.invokeExact(number);
      return code == SUCCESS ? number.get(JAVA_INT, 0) : 0;
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }
}
