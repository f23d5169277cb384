package braid.internal.cuda.memory;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import java.util.List;
import org.junit.jupiter.api.Test;

class NvshmemKindTest {
  @Test
  void onlyTheWorldJoins() {
    assertThatCode(() -> NvshmemKind.requireWorld("x", List.of(0, 1, 2), 3))
        .doesNotThrowAnyException();
    assertThatThrownBy(() -> NvshmemKind.requireWorld("x", List.of(0, 2), 3))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "x: all 3 ranks join NVSHMEM together at its first use, but this group has ranks"
                + " [0, 2] only; first allocate such memory once on all ranks:"
                + " SymmetricTensor.on(ProcessGroup.world()).shape(1).memory(MemoryKind.NVSHMEM).allocate()");
  }
}
