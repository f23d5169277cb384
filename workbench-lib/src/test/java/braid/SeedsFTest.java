package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.CaseContext;
import braid.internal.selftest.MemoryCase;
import braid.model.DType;
import braid.model.MemoryKind;
import braid.selftest.SelfTest;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// Memory in small pieces, as far as the host backend can show it (F11). On a GPU the self-test
/// runs the same case in every kind of memory.
class SeedsFTest {
  @ParameterizedTest
  @EnumSource(DType.class)
  void f11AnAllocationBelowTheGranularityHasEveryViewWithoutGaps(DType dtype) {
    for (int ranks = 1; ranks <= 4; ranks++) {
      LocalRanks.run(
          ranks,
          world -> {
            for (var kind : Capabilities.kinds()) {
              if (kind == MemoryKind.NATIVE) {
                for (var each : MemoryCase.table()) {
                  if (each.dtype() == dtype) {
                    each.check(CaseContext.of(world, kind));
                  }
                }
              } else {
                // The host refuses unavailable kinds by name.
                assertThat(Capabilities.hostCollectives())
                    .filteredOn(row -> row.kind() == kind)
                    .noneMatch(Capabilities.CollectiveRow::supported);
              }
            }
          });
    }
  }

  @ParameterizedTest
  @CsvSource({"1,FP32", "3,BF16", "5,FP16", "1023,FP32", "4097,FP8_E4M3"})
  void f11PartsLieSideBySideInTheWhole(long elements, DType dtype) {
    LocalRanks.run(
        3,
        world -> {
          try (var x = SymmetricTensor.on(world).shape(elements).dtype(dtype).allocate()) {
            long bytes = elements * dtype.bytes();
            var all = x.all().segment();
            assertThat(all.byteSize()).isEqualTo(3 * bytes);
            for (int rank = 0; rank < 3; rank++) {
              assertThat(x.on(rank).segment().byteSize()).isEqualTo(bytes);
              assertThat(x.on(rank).segment().address()).isEqualTo(all.address() + rank * bytes);
            }
          }
        });
  }

  @Test
  void f11TheSelfTestHasARowForEachKindOfMemoryOrTheReasonWhyNot() {
    var finds = new AtomicInteger();
    LocalRanks.run(
        2,
        world -> {
          var report = SelfTest.on(world).quick().dtypes(DType.BF16).run();
          for (var kind : Capabilities.kinds()) {
            var rows =
                report.rows().stream()
                    .filter(row -> row.configuration().memory().equals(kind.toString()))
                    .filter(
                        row ->
                            row.outcome() == SelfTest.Outcome.NOT_AVAILABLE
                                ? row.configuration().what().equals(SelfTest.Configuration.ANY)
                                    && !row.said().isEmpty()
                                : row.configuration().what().equals("symmetric tensor"))
                    .toList();
            assertThat(rows).as(kind.toString()).hasSize(1);
            finds.incrementAndGet();
          }
        });
    assertThat(finds).hasValue(2 * Capabilities.kinds().size());
  }
}
