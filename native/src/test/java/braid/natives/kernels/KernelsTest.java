package braid.natives.kernels;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class KernelsTest {
  @Test
  void aBulkCopyTakesWhatBeginsAndEndsAtMultiplesOf16() {
    assertThat(Kernels.fitsTma(0x1000, 0x2010, 48)).isTrue();
    assertThat(Kernels.fitsTma(0x1000, 0x2010, 0)).isTrue();
    assertThat(Kernels.fitsTma(0x1008, 0x2010, 48)).isFalse();
    assertThat(Kernels.fitsTma(0x1000, 0x2011, 48)).isFalse();
    assertThat(Kernels.fitsTma(0x1000, 0x2010, 50)).isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    "1, 16, 1",
    "4, 16384, 1",
    "4, 16400, 2",
    "4, 65536, 4",
    "4, 10000000000, 4",
    "132, 1048576, 64",
  })
  void noMoreBlocksCopyInBulkThanThereAreChunks(int asked, long bytes, int blocks) {
    assertThat(Kernels.tmaBlocks(asked, bytes)).isEqualTo(blocks);
  }
}
