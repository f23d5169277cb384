package braid.internal.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.MemoryKind;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class AutoKindTest {
  private final List<String> said = new ArrayList<>();

  @Test
  void nativeMemoryIsTakenWithoutAWord() {
    var kind = new AutoKind(Optional::empty, said::add);
    assertThat(kind.take()).isEqualTo(MemoryKind.NATIVE);
    assertThat(said).isEmpty();
  }

  @Test
  void whatIsTakenInsteadIsSaidOnceWithItsReason() {
    var kind = new AutoKind(() -> Optional.of("the driver passes none"), said::add);
    assertThat(kind.take()).isEqualTo(MemoryKind.IPC);
    assertThat(kind.take()).isEqualTo(MemoryKind.IPC);
    assertThat(said)
        .containsExactly(
            "symmetric memory is of kind ipc, since auto found no native: the driver passes none");
  }
}
