package braid.natives.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.natives.kernels.AttentionArguments.Heads;
import braid.natives.kernels.AttentionArguments.Mask;
import braid.natives.kernels.AttentionArguments.Rows;
import braid.natives.kernels.AttentionMergeArguments.Part;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class AttentionArgumentsTest {
  private static final Mask CAUSAL = new Mask(0, 0, true, 0);

  private static AttentionArguments of(ElementType type, ElementType out, int size, long query) {
    return of(type, new Rows(0x60000, out, 300, 6L * size), size, query, 0);
  }

  private static AttentionArguments of(
      ElementType type, Rows output, int size, long query, long earlier) {
    long stride = 6L * size;
    return AttentionArguments.of(
        new Rows(query, type, output.count(), stride),
        new Rows(0x20000, type, 500, stride),
        new Rows(0x40000, type, 500, stride),
        output,
        new Rows(0x80000, ElementType.FP32, output.count(), 6),
        new Heads(6, 1, size),
        CAUSAL,
        0.125f,
        earlier);
  }

  @Test
  void theHeadSizeChoosesTheKernel() {
    for (var type : List.of(ElementType.FP32, ElementType.BF16, ElementType.FP16)) {
      assertThat(of(type, type, 64, 0x1000).kernel()).isEqualTo("attention_plain_64");
      assertThat(of(type, ElementType.FP32, 65, 0x1008).kernel()).isEqualTo("attention_plain_128");
    }
  }

  @Test
  void aLaunchHasOneBlockPerTileAndHead() {
    var one = of(ElementType.BF16, ElementType.BF16, 128, 0x1000);
    assertThat(one.blocks()).isEqualTo(6 * 5);
    assertThat(one.launches()).hasSize(1);
    assertThat(of(ElementType.FP32, ElementType.FP32, 300, 0x1000).launches()).hasSize(3);
  }

  @Test
  void everyKernelItCanChooseIsLoaded() {
    for (var type : List.of(ElementType.FP32, ElementType.BF16, ElementType.FP16)) {
      for (int size : List.of(1, 8, 64, 128, 129, 136, 256, 264, 1000)) {
        assertThat(AttentionKernels.names()).contains(of(type, ElementType.FP32, size, 0).kernel());
      }
    }
  }

  /// Earlier keys have their output in fp32: it may be elsewhere if the output is in 16 bits.
  @Test
  void anOutputIn16BitsIsNotContinuedInPlace() {
    var output = new Rows(0x60000, ElementType.BF16, 300, 6 * 64);
    assertThat(of(ElementType.BF16, output, 64, 0x1000, 0x90000).launches()).hasSize(1);
    assertThatThrownBy(() -> of(ElementType.BF16, output, 64, 0x1000, output.address()))
        .hasMessage("attention continues an output in FP32 but it was BF16");
    var empty = new Rows(0, ElementType.BF16, 0, 6 * 64);
    assertThat(of(ElementType.BF16, empty, 64, 0x1000, 0).blocks()).isZero();
  }

  @Test
  void argumentsThatTheKernelsCannotComputeAreRefused() {
    assertThatThrownBy(() -> of(ElementType.E4M3, ElementType.FP32, 64, 0))
        .hasMessage("attention is in FP32, BF16 or FP16 but the query is E4M3");
    assertThatThrownBy(() -> of(ElementType.BF16, ElementType.FP16, 64, 0))
        .hasMessage("the output must be BF16 or FP32 but was FP16");
    assertThatThrownBy(() -> of(ElementType.FP32, ElementType.FP32, 64, 2))
        .hasMessage("rows of FP32 must lie at a multiple of 4 bytes but were at 2");
    var part = new Part(0, 0);
    assertThatThrownBy(
            () ->
                AttentionMergeArguments.of(
                    Collections.nCopies(17, part), part, ElementType.FP32, 1, 1, 1))
        .hasMessage("a merge must have 1..16 parts but has 17");
  }
}
