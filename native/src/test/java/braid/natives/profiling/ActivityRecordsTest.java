package braid.natives.profiling;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Writes records field by field, as the header lays them out.
class ActivityRecordsTest {
  private final Arena arena = Arena.ofAuto();
  private final GraphNodes nodes = new GraphNodes();
  private final ActivityRecords records = new ActivityRecords(nodes, time -> time + 1000);

  @Test
  void aKernelIsRead() {
    records.add(kernel(91, 0, 500, 700));
    assertThat(records.all())
        .isEqualTo(
            List.of(
                new Cupti.Kernel(
                    new Cupti.Correlation(-1, -1, 0, 3),
                    1500,
                    1700,
                    13,
                    "gemm_kernel",
                    2 * 3 * 4)));
  }

  @Test
  void aKernelIsNamedWithItsGrid() {
    records.add(kernel(91, 0, 500, 700));
    assertThat(records.all())
        .extracting(each -> ((Cupti.Kernel) each).engine())
        .containsExactly("gemm_kernel <<<24>>>");
  }

  @Test
  void aCopyWithinADeviceIsRead() {
    records.add(copy(92, 40, 60));
    assertThat(records.all())
        .isEqualTo(
            List.of(
                new Cupti.Copy(
                    new Cupti.Correlation(-1, -1, 0, 0),
                    1040,
                    1060,
                    14,
                    1 << 20,
                    "copy engine (channel 9)",
                    8)));
  }

  @Test
  void aCopyBetweenDevicesIsRead() {
    var record = record(ActivityRecords.MEMCPY_PEER, 96);
    record.set(JAVA_BYTE, 4, (byte) 10);
    record.set(JAVA_LONG, 8, 5L << 30);
    record.set(JAVA_LONG, 16, 7L);
    record.set(JAVA_LONG, 24, 9L);
    record.set(JAVA_INT, 32, 3);
    record.set(JAVA_INT, 40, 15);
    record.set(JAVA_INT, 44, 3);
    record.set(JAVA_INT, 52, 6);
    record.set(JAVA_INT, 60, 93);
    record.set(JAVA_LONG, 72, 77L);
    record.set(JAVA_INT, 80, 4);
    record.set(JAVA_INT, 84, 11);
    record.set(JAVA_INT, 88, 1);
    records.add(record);
    assertThat(records.all())
        .isEqualTo(
            List.of(
                new Cupti.Copy(
                    new Cupti.Correlation(-1, -1, 77, 4),
                    1007,
                    1009,
                    15,
                    5L << 30,
                    "SMs (channel 11)",
                    10)));
  }

  @Test
  void aFillIsRead() {
    var record = record(ActivityRecords.MEMSET, 88);
    record.set(JAVA_LONG, 8, 4096L);
    record.set(JAVA_LONG, 16, 1L);
    record.set(JAVA_LONG, 24, 2L);
    record.set(JAVA_INT, 40, 16);
    record.set(JAVA_INT, 44, 94);
    record.set(JAVA_LONG, 64, 78L);
    record.set(JAVA_INT, 72, 5);
    record.set(JAVA_INT, 76, 12);
    record.set(JAVA_INT, 80, 3);
    records.add(record);
    assertThat(records.all())
        .isEqualTo(
            List.of(
                new Cupti.Fill(
                    new Cupti.Correlation(-1, -1, 78, 5),
                    1001,
                    1002,
                    16,
                    4096,
                    "unknown (channel 12 of type 3)")));
  }

  @Test
  void joinsTheExternalIdWhicheverRecordComesFirst() {
    records.add(external(ActivityRecords.EXTERNAL_KIND, 5_000_000_000L, 91));
    records.add(kernel(91, 0, 1, 2));
    records.add(copy(92, 3, 4));
    records.add(external(ActivityRecords.EXTERNAL_KIND, 8, 92));
    records.add(copy(95, 5, 6));
    records.add(external(1, 9, 95)); // of another tool
    assertThat(records.all())
        .extracting(Cupti.Activity::externalId)
        .containsExactly(5_000_000_000L, 8L, -1L);
  }

  @Test
  void aReplayedActivityHasItsNodeAndItsLaunch() {
    nodes.created(100);
    nodes.claim(42);
    nodes.cloned(200, 100);
    records.add(external(ActivityRecords.EXTERNAL_KIND, 7, 91));
    records.add(kernel(91, 200, 1, 2));
    records.add(kernel(91, 201, 3, 4));
    assertThat(records.all())
        .extracting(Cupti.Activity::correlation)
        .containsExactly(
            new Cupti.Correlation(42, 7, 200, 3), new Cupti.Correlation(-1, 7, 201, 3));
  }

  @Test
  void activitiesAreSortedAndThoseWithoutTimeCounted() {
    records.add(kernel(1, 0, 30, 40));
    records.add(kernel(2, 0, 0, 0));
    records.add(kernel(3, 0, 10, 20));
    assertThat(records.all()).extracting(Cupti.Activity::startNanos).containsExactly(1010L, 1030L);
    assertThat(records.untimed()).isEqualTo(1);
  }

  @Test
  void otherKindsAreIgnored() {
    records.add(record(ActivityRecords.DRIVER, 48));
    records.add(record(ActivityRecords.RUNTIME, 48));
    assertThat(records.all()).isEmpty();
  }

  private MemorySegment kernel(int correlation, long node, long start, long end) {
    var record = record(ActivityRecords.CONCURRENT_KERNEL, 216);
    record.set(JAVA_SHORT, 6, (short) 168);
    record.set(JAVA_LONG, 16, start);
    record.set(JAVA_LONG, 24, end);
    record.set(JAVA_INT, 40, 2);
    record.set(JAVA_INT, 48, 13);
    record.set(JAVA_INT, 52, 2);
    record.set(JAVA_INT, 56, 3);
    record.set(JAVA_INT, 60, 4);
    record.set(JAVA_INT, 64, 32);
    record.set(JAVA_INT, 68, 2);
    record.set(JAVA_INT, 72, 1);
    record.set(JAVA_INT, 76, 48);
    record.set(JAVA_INT, 80, 1000);
    record.set(JAVA_INT, 92, correlation);
    record.set(ADDRESS, 104, arena.allocateFrom("gemm_kernel"));
    record.set(JAVA_LONG, 144, node);
    record.set(JAVA_INT, 156, 3);
    return record;
  }

  private MemorySegment copy(int correlation, long start, long end) {
    var record = record(ActivityRecords.MEMCPY, 96);
    record.set(JAVA_BYTE, 4, (byte) 8);
    record.set(JAVA_LONG, 8, 1L << 20);
    record.set(JAVA_LONG, 16, start);
    record.set(JAVA_LONG, 24, end);
    record.set(JAVA_INT, 32, 2);
    record.set(JAVA_INT, 40, 14);
    record.set(JAVA_INT, 44, correlation);
    record.set(JAVA_INT, 76, 9);
    record.set(JAVA_INT, 80, 2);
    return record;
  }

  private MemorySegment external(int kind, long id, int correlation) {
    var record = record(ActivityRecords.EXTERNAL_CORRELATION, 24);
    record.set(JAVA_INT, 4, kind);
    record.set(JAVA_LONG, 8, id);
    record.set(JAVA_INT, 16, correlation);
    return record;
  }

  private MemorySegment record(int kind, long bytes) {
    var record = arena.allocate(bytes, 8);
    record.set(JAVA_INT, 0, kind);
    return record;
  }
}
