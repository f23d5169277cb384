package braid.natives.profiling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/// With or without the library, as this machine has it.
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
  void thereIsALibraryOrTheReasonWhyNot() {
    assertThat(NvtxRange.library().isPresent()).isEqualTo(NvtxRange.missing().isEmpty());
    NvtxRange.missing().ifPresent(line -> assertThat(line).contains("; "));
  }

  @Test
  void aNameIsOnlyMadeWhereThereIsALibrary() {
    var made = new AtomicInteger();
    for (int i = 0; i < 3; i++) {
      NvtxRange.named(() -> "kept " + made.incrementAndGet()).open().close();
      NvtxRange.open(() -> "made for once " + made.incrementAndGet()).close();
    }
    assertThat(made).hasValue(NvtxRange.library().isPresent() ? 6 : 0);
  }
}
