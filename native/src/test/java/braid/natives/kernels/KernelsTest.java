package braid.natives.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.natives.cuda.GpuCopy;
import java.util.Collections;
import java.util.List;
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
  @CsvSource({"1, 1", "2048, 1", "2049, 2", "1000000, 66", "10000000000, 66"})
  void aSumThatWaitsLeavesHalfOfTheMultiprocessors(long count, int blocks) {
    assertThat(Kernels.sumBlocks(132, count)).isEqualTo(blocks);
  }

  @ParameterizedTest
  @CsvSource({"1, 1, 256", "66, 131072, 256", "66, 917504, 768", "66, 200000, 512"})
  void theBlocksOfALargeSumAreLarge(int blocks, long count, int threads) {
    assertThat(Kernels.sumThreads(blocks, count, 768)).isEqualTo(threads);
  }

  @ParameterizedTest
  @CsvSource({"1, 16, 1", "1, 8193, 2", "1, 10000000000, 16", "3, 1000000, 5", "16, 1000000, 1"})
  void copiesThatWaitShareAnEighthOfTheMultiprocessors(int copies, long bytes, int blocks) {
    assertThat(Kernels.copyBlocks(132, copies, bytes)).isEqualTo(blocks);
  }

  @Test
  void aKernelHasRoomForSomeWordsAndCopies() {
    var word = List.of(0x1000L);
    var most = Collections.nCopies(Handshake.MOST_WORDS, 0x1000L);
    assertThat(new Handshake(0, most, most, most, most).waits()).isTrue();
    assertThat(new Handshake(0, word, List.of(), word, word).waits()).isFalse();
    assertThatThrownBy(() -> new Handshake(0, word, Collections.nCopies(17, 0x1000L), word, word))
        .hasMessage("a kernel must raise or await 0..16 words but has 17");
    var copy = new GpuCopy(0x1000, 0x2000, 16);
    assertThat(new CopyArguments(List.of(copy, new GpuCopy(0x1000, 0x2000, 48))).longest())
        .isEqualTo(48);
    assertThatThrownBy(() -> new CopyArguments(List.of()))
        .hasMessage("a kernel must make 1..16 copies but has 0");
    assertThatThrownBy(() -> new CopyArguments(Collections.nCopies(17, copy)))
        .hasMessage("a kernel must make 1..16 copies but has 17");
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
