package braid.natives.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.natives.kernels.AttentionArguments.Heads;
import braid.natives.kernels.AttentionArguments.Mask;
import braid.natives.kernels.AttentionArguments.Rows;
import braid.natives.kernels.AttentionGradientArguments.Gradients;
import braid.natives.kernels.AttentionGradientArguments.Launch;
import braid.natives.kernels.AttentionGradientArguments.Memory;
import java.util.List;
import org.junit.jupiter.api.Test;

class AttentionGradientArgumentsTest {
  private static final int ROWS = 300;
  private static final int KEYS = 500;
  private static final int HEADS = 6;
  private static final int GROUP = 3;

  private static Rows rows(ElementType type, int count, int columns) {
    return new Rows(0x1000, type, count, columns);
  }

  private static AttentionGradientArguments of(
      ElementType type, int size, int keys, Rows outputGradient, Rows queryGradient) {
    var ofKey = rows(ElementType.FP32, keys, HEADS / GROUP * size);
    return AttentionGradientArguments.of(
        attention(type, size, keys),
        new Gradients(outputGradient, queryGradient, ofKey, ofKey, false, true),
        new Memory(0x2000, 0, 0));
  }

  private static AttentionGradientArguments of(
      Rows narrow, Rows keyGradient, Rows valueGradient, boolean adds) {
    return AttentionGradientArguments.of(
        attention(ElementType.BF16, 64, KEYS),
        new Gradients(narrow, narrow, keyGradient, valueGradient, false, adds),
        new Memory(0x2000, 0, 0));
  }

  private static AttentionArguments attention(ElementType type, int size, int keys) {
    int columns = HEADS * size;
    int kvColumns = columns / GROUP;
    return AttentionArguments.of(
        rows(type, ROWS, columns),
        rows(type, keys, kvColumns),
        rows(type, keys, kvColumns),
        rows(type, ROWS, columns),
        rows(ElementType.FP32, ROWS, HEADS),
        new Heads(HEADS, GROUP, size),
        new Mask(0, 0, true, 0),
        0.125f,
        0);
  }

  private static AttentionGradientArguments of(ElementType type, int size) {
    return of(
        type,
        size,
        KEYS,
        rows(type, ROWS, HEADS * size),
        rows(ElementType.FP32, ROWS, HEADS * size));
  }

  @Test
  void theHeadSizeChoosesTheKernels() {
    for (var type : List.of(ElementType.FP32, ElementType.BF16, ElementType.FP16)) {
      assertThat(of(type, 64).kernels())
          .containsExactly("attention_gradient_query_plain_64", "attention_gradient_keys_plain_64");
      assertThat(of(type, 264).kernels())
          .containsExactly(
              "attention_gradient_query_plain_128", "attention_gradient_keys_plain_128");
    }
  }

  @Test
  void aLaunchHasOneBlockPerTileAndHead() {
    var launches = of(ElementType.BF16, 128).launches();
    assertThat(launches).extracting(Launch::blocks).containsExactly(HEADS * 5, HEADS / GROUP * 8);
    assertThat(of(ElementType.BF16, 256).launches()).hasSize(4);
    assertThat(of(ElementType.FP32, 300).launches()).hasSize(6);
  }

  @Test
  void keysWithoutRowsAreNotLaunched() {
    var launches =
        of(
                ElementType.FP32,
                64,
                0,
                rows(ElementType.FP32, ROWS, 384),
                rows(ElementType.FP32, ROWS, 384))
            .launches();
    assertThat(launches)
        .extracting(Launch::kernel)
        .containsExactly("attention_gradient_query_plain_64");
  }

  @Test
  void everyKernelItCanChooseIsLoaded() {
    for (var type : List.of(ElementType.FP32, ElementType.BF16, ElementType.FP16)) {
      for (int size : List.of(1, 8, 64, 128, 129, 136, 256, 264, 1000)) {
        assertThat(AttentionKernels.names()).containsAll(of(type, size).kernels());
      }
    }
  }

  @Test
  void argumentsThatTheKernelsCannotComputeAreRefused() {
    var query = rows(ElementType.FP32, ROWS, 384);
    assertThatThrownBy(
            () -> of(ElementType.BF16, 64, KEYS, rows(ElementType.FP16, ROWS, 384), query))
        .hasMessage("the gradient of the output must be BF16 but was FP16");
    var output = rows(ElementType.BF16, ROWS, 384);
    var fp16 = rows(ElementType.FP16, ROWS, 384);
    assertThatThrownBy(() -> of(ElementType.BF16, 64, KEYS, output, fp16))
        .hasMessage("gradients must be FP32 or BF16 but one was FP16");
    var keys = rows(ElementType.BF16, KEYS, 192);
    assertThatThrownBy(() -> of(output, keys, keys, true))
        .hasMessage("gradients must be FP32 to be added to but one was BF16");
    assertThatThrownBy(() -> of(output, keys, rows(ElementType.FP32, KEYS, 192), false))
        .hasMessage("gradients of key and value must have one type but were BF16 and FP32");
    assertThatThrownBy(
            () -> of(ElementType.BF16, 64, KEYS, output, rows(ElementType.FP32, ROWS - 1, 384)))
        .hasMessage(
            "numbers of rows do not fit: query 300, key 500, their gradients 299, 500; gradients of output 300, value 500");
  }
}
