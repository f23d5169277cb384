package braid.natives.profiling;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.cuda.GpuError;
import braid.natives.load.Libraries;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Calls the library itself, which needs no GPU for this.
class CuptiCallsTest {
  @BeforeEach
  void needsTheLibrary() {
    assumeTrue(Libraries.find(Libraries.Library.CUPTI).isPresent(), "CUPTI is not installed here");
  }

  @Test
  void hasEveryFunctionAndAVersion() {
    assertThat(CuptiCalls.load().version()).isBetween(130_000, 139_999);
  }

  @Test
  void errorsHaveCuptisNameAndARemedy() {
    var calls = CuptiCalls.load();
    assertThatThrownBy(() -> calls.check("cuptiSubscribe", 39, "rank 3, device 3"))
        .isInstanceOf(GpuError.class)
        .hasMessageContaining("cuptiSubscribe")
        .hasMessageContaining("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")
        .hasMessageContaining("rank 3, device 3")
        .hasMessageContaining("end the other profiler");
    assertThat(calls.name(12)).isEqualTo("CUPTI_ERROR_MAX_LIMIT_REACHED");
    assertThat(calls.name(35)).isEqualTo("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
    assertThat(calls.name(123456)).isEqualTo("CUptiResult 123456");
  }

  /// The library steps from record to record by its own sizes, so none may be smaller than the part
  /// that is read.
  @Test
  void recordsCoverAllFieldsThatAreRead() throws Throwable {
    var calls = CuptiCalls.load();
    var kinds =
        List.of(
            ActivityRecords.CONCURRENT_KERNEL,
            ActivityRecords.MEMCPY,
            ActivityRecords.MEMCPY_PEER,
            ActivityRecords.MEMSET,
            ActivityRecords.EXTERNAL_CORRELATION);
    var least =
        List.of(
            ActivityRecords.KERNEL_BYTES,
            ActivityRecords.COPY_BYTES,
            ActivityRecords.PEER_COPY_BYTES,
            ActivityRecords.FILL_BYTES,
            ActivityRecords.EXTERNAL_BYTES);
    for (int i = 0; i < kinds.size(); i++) {
      var size = step(calls, kinds.get(i));
      assertThat(size).as("kind %d", kinds.get(i)).isGreaterThanOrEqualTo(least.get(i));
    }
  }

  /// Distance between two records of a kind according to CUPTI.
  private static long step(CuptiCalls calls, int kind) throws Throwable {
    try (var arena = Arena.ofConfined()) {
      var buffer = arena.allocate(4096, 8);
      for (long index = 0; index < buffer.byteSize(); index += 8) {
        buffer.set(JAVA_INT, index, kind);
      }
      var slot = arena.allocate(ADDRESS);
      var seen = new ArrayList<Long>();
      slot.set(ADDRESS, 0, MemorySegment.NULL);
      while (seen.size() < 2
          && (int) calls.nextRecord.invokeExact(buffer, buffer.byteSize(), slot)
              == CuptiCalls.SUCCESS) {
        seen.add(slot.get(ADDRESS, 0).address());
      }
      assertThat(seen).hasSize(2);
      return seen.get(1) - seen.get(0);
    }
  }
}
