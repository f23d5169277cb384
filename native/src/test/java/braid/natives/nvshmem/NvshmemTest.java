package braid.natives.nvshmem;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.load.Libraries;
import java.lang.foreign.Arena;
import java.util.List;
import org.junit.jupiter.api.Test;

class NvshmemTest {
  @Test
  void structsSayTheirVersionsAndNothingElse() {
    try (var arena = Arena.ofConfined()) {
      var id = NvshmemCalls.uniqueId(arena);
      assertThat(id.byteSize()).isEqualTo(128);
      assertThat(id.get(JAVA_INT, 0)).isEqualTo(65_664);
      var attributes = NvshmemCalls.attributes(arena);
      assertThat(attributes.byteSize()).isEqualTo(144);
      assertThat(attributes.get(JAVA_INT, 0)).isEqualTo(131_216);
      assertThat(attributes.get(JAVA_LONG, 8)).isZero();
      assertThat(attributes.get(JAVA_INT, 16)).isEqualTo(131_200);
      assertThat(attributes.get(JAVA_INT, 24)).isEqualTo(65_560);
      assertThat(attributes.get(JAVA_INT, 40)).isEqualTo(-1);
      assertThat(attributes.get(JAVA_INT, 44)).isEqualTo(-1);
      assertThat(attributes.get(JAVA_INT, 48)).isEqualTo(-1);
    }
  }

  /// Needs the driver's library but no GPU: ranks join over sockets.
  @Test
  void theLibraryMakesAnIdAndKeepsItsHeap() {
    for (var library : List.of(Libraries.Library.CUDA_DRIVER, Libraries.Library.NVSHMEM)) {
      assumeTrue(Libraries.find(library).isPresent(), () -> library + " is not installed here");
    }
    var id = Nvshmem.uniqueId(64L << 20);
    assertThat(id).hasSize(128);
    assertThat(Nvshmem.uniqueId(64L << 20)).isNotEqualTo(new byte[128]);
    assertThatThrownBy(() -> Nvshmem.uniqueId(1L << 30))
        .hasMessageContaining("67108864 bytes in this process but 1073741824 were requested");
  }

  @Test
  void aHeapMustHaveASize() {
    assertThatThrownBy(() -> Nvshmem.uniqueId(0)).hasMessageContaining("more than 0 bytes");
  }
}
