package braid.internal.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.MemoryKind;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class AutoKindTest {
  private final List<String> printed = new ArrayList<>();

  @Test
  void nativeMemoryIsUsedWithoutALine() {
    var kind = new AutoKind(Optional::empty, printed::add);
    assertThat(kind.take()).isEqualTo(MemoryKind.NATIVE);
    assertThat(printed).isEmpty();
  }

  @Test
  void theFallbackIsPrintedOnceWithItsReason() {
    var kind = new AutoKind(() -> Optional.of("the driver passes none"), printed::add);
    assertThat(kind.take()).isEqualTo(MemoryKind.IPC);
    assertThat(kind.take()).isEqualTo(MemoryKind.IPC);
    assertThat(printed)
        .containsExactly(
            "symmetric memory is of kind ipc, since auto found no native: the driver passes none");
  }
}
