package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.Capabilities.CollectiveRow;
import braid.model.BackendKind;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.DType;
import braid.model.MemoryKind;
import braid.model.Transport;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/// The table's rows for GPUs, as far as no GPU is needed to check them.
class CapabilitiesTest {
  private static final List<CollectiveRow> ROWS = Capabilities.collectivesOf(BackendKind.CUDA);

  private static Set<MemoryKind> kinds(Collective collective, CollectiveWay way) {
    return ROWS.stream()
        .filter(row -> row.collective() == collective && row.way() == way && row.supported())
        .map(CollectiveRow::kind)
        .collect(Collectors.toSet());
  }

  @Test
  void onGpusEveryOverlapButBulkOfDependentDataIsThereInEveryKindOfMemory() {
    assertThat(Capabilities.of(BackendKind.CUDA))
        .hasSameSizeAs(Capabilities.host())
        .filteredOn(row -> !row.transport().isLibrary())
        .allMatch(row -> row.supported() == row.method().unsupported(row.pattern()).isEmpty())
        .allMatch(row -> row.supported() ? !row.engine().isEmpty() : !row.note().isEmpty());
  }

  @Test
  void c6EveryCollectiveByEveryWayIsThereOrSaysWhyNot() {
    assertThat(ROWS).hasSize(8 * CollectiveWay.values().length * 4);
    assertThat(ROWS)
        .allMatch(row -> row.supported() ? !row.engine().isEmpty() : row.note().contains("; "));
  }

  @Test
  void librariesHaveTheirCollectivesInTheirOwnMemory() {
    var all = EnumSet.complementOf(EnumSet.of(MemoryKind.AUTO));
    for (var collective : List.of(Collective.ALL_GATHER, Collective.ALL_TO_ALL)) {
      assertThat(kinds(collective, CollectiveWay.COPY_ENGINE)).isEqualTo(all);
      assertThat(kinds(collective, CollectiveWay.PUSHING)).isEqualTo(all);
      assertThat(kinds(collective, CollectiveWay.NCCL_KERNELS)).isEqualTo(all);
      assertThat(kinds(collective, CollectiveWay.NCCL_COPY_ENGINE))
          .containsExactly(MemoryKind.NCCL);
      assertThat(kinds(collective, CollectiveWay.NVSHMEM_PUTS)).containsExactly(MemoryKind.NVSHMEM);
    }
    for (var sum : List.of(Collective.REDUCE_SCATTER, Collective.ALL_REDUCE)) {
      assertThat(kinds(sum, CollectiveWay.NCCL_KERNELS)).isEqualTo(all);
      assertThat(kinds(sum, CollectiveWay.PUSHING)).isEmpty();
      assertThat(kinds(sum, CollectiveWay.NCCL_COPY_ENGINE)).isEmpty();
      assertThat(kinds(sum, CollectiveWay.NVSHMEM_PUTS)).isEmpty();
    }
    assertThat(kinds(Collective.ALL_REDUCE, CollectiveWay.NCCL_SYMMETRIC))
        .containsExactly(MemoryKind.NCCL);
    // It returned wrong sums.
    assertThat(kinds(Collective.REDUCE_SCATTER, CollectiveWay.NCCL_SYMMETRIC)).isEmpty();
    assertThat(kinds(Collective.BROADCAST, CollectiveWay.NVSHMEM_PUTS))
        .containsExactly(MemoryKind.NVSHMEM);
    assertThat(kinds(Collective.BROADCAST, CollectiveWay.NCCL_COPY_ENGINE)).isEmpty();
  }

  @Test
  void onlyNcclAddsAndNotEightBits() {
    for (var library : List.of(Transport.NCCL_KERNELS, Transport.NCCL_SYMMETRIC)) {
      assertThat(Arrays.stream(DType.values()).filter(library::adds))
          .containsExactly(DType.FP32, DType.TF32, DType.BF16, DType.FP16);
    }
    for (var library : List.of(Transport.NCCL_COPY_ENGINE, Transport.NVSHMEM_PUTS)) {
      assertThat(DType.values()).noneMatch(library::adds);
    }
  }
}
