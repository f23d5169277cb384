package braid.natives.profiling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/// Runs with or without the library, whichever this machine has.
class NvtxRangeTest {
  @Test
  void rangesNestAndThrowNothing() {
    var inner = NvtxRange.named(() -> "inner");
    try (var _ = NvtxRange.named(() -> "outer ↔").open()) {
      for (int i = 0; i < 3; i++) {
        try (var _ = inner.open()) {
          assertThat(inner).isNotNull();
        }
      }
    }
  }

  @Test
  void aMissingLibraryHasAReason() {
    assertThat(NvtxRange.library().isPresent()).isEqualTo(NvtxRange.missing().isEmpty());
    NvtxRange.missing().ifPresent(line -> assertThat(line).contains("; "));
  }

  @Test
  void aNameIsOnlyMadeWhereThereIsALibrary() {
    var computed = new AtomicInteger();
    for (int i = 0; i < 3; i++) {
      NvtxRange.named(() -> "kept " + computed.incrementAndGet()).open().close();
      NvtxRange.open(() -> "for one use " + computed.incrementAndGet()).close();
    }
    assertThat(computed).hasValue(NvtxRange.library().isPresent() ? 6 : 0);
  }
}
