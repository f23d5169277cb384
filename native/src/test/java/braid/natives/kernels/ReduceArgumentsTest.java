package braid.natives.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.natives.cuda.GpuCopy;
import braid.natives.kernels.ReduceArguments.Finish;
import braid.natives.kernels.ReduceArguments.Part;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ReduceArgumentsTest {
  private static ReduceArguments sum(List<Part> parts, long out, ElementType type) {
    return ReduceArguments.of(parts, new Part(out, type), 3, 5, Finish.NONE);
  }

  @Test
  void choosesTheFastKernelWhereTypesAndAddressesAllow() {
    var bf16 = new Part(0x1000, ElementType.BF16);
    var fp32 = new Part(0x2000, ElementType.FP32);
    assertThat(sum(List.of(bf16, bf16), 0x4000, ElementType.BF16).kernel())
        .isEqualTo("reduce_bf16_bf16");
    assertThat(sum(List.of(new Part(0x2000, ElementType.TF32)), 0x4008, ElementType.BF16).kernel())
        .isEqualTo("reduce_fp32_bf16");
    assertThat(sum(List.of(fp32, bf16), 0x4000, ElementType.BF16).kernel()).isEqualTo("reduce_any");
    assertThat(sum(List.of(bf16), 0x4008, ElementType.BF16).kernel()).isEqualTo("reduce_any");
    assertThat(
            sum(List.of(bf16, new Part(0x1002, ElementType.BF16)), 0x4000, ElementType.BF16)
                .kernel())
        .isEqualTo("reduce_any");
  }

  @Test
  void rowsWithGapsTakeTheKernelOfAnyStride() {
    var part = new Part(0x1000, ElementType.FP32, 8);
    var out = new Part(0x4000, ElementType.FP32, 24);
    assertThat(ReduceArguments.of(List.of(part), out, 3, 8, Finish.NONE).kernel())
        .isEqualTo("reduce_any");
    assertThat(ReduceArguments.of(List.of(out, part), part, 3, 8, Finish.NONE).kernel())
        .isEqualTo("reduce_any");
    assertThat(ReduceArguments.of(List.of(part), part, 3, 8, Finish.NONE).kernel())
        .isEqualTo("reduce_fp32_fp32");
  }

  @Test
  void aSumTakesCopiesOfAllOfIt() {
    var part = new Part(0x1000, ElementType.BF16);
    var sum = sum(List.of(part, part), 0x4000, ElementType.BF16);
    var whole = new GpuCopy(0x6000, 0x4000, 30);
    assertThat(sum.with(List.of(whole)).orElseThrow().kernel()).isEqualTo("reduce_bf16_bf16");
    assertThat(sum.with(List.of(whole, new GpuCopy(0x7008, 0x4000, 30))).orElseThrow().kernel())
        .isEqualTo("reduce_any");
    assertThat(sum.with(List.of(whole, new GpuCopy(0x6008, 0x4000, 30)))).isEmpty();
    assertThat(sum.with(List.of(whole)).orElseThrow().with(List.of(whole))).isEmpty();
    assertThat(sum.with(List.of(whole, new GpuCopy(0x6000, 0x4000, 28)))).isEmpty();
    assertThat(sum.with(List.of(new GpuCopy(0x6000, 0x4002, 30)))).isEmpty();
    assertThat(sum.with(copies(0, 15))).isPresent();
    assertThat(sum.with(copies(0, 16))).isEmpty();
    var inTwo = sum.with(copies(0, 7)).orElseThrow().with(copies(7, 15)).orElseThrow();
    assertThat(inTwo.bytes().mismatch(sum.with(copies(0, 15)).orElseThrow().bytes())).isNegative();
    assertThat(inTwo.with(copies(15, 16))).isEmpty();
    assertThat(sum.with(List.of(new GpuCopy(0x1000, 0x4000, 30)))).isPresent();
    assertThat(sum.with(List.of(new GpuCopy(0x1002, 0x4000, 30)))).isEmpty();
    assertThat(sum.with(List.of(new GpuCopy(0xffe, 0x4000, 30)))).isEmpty();
    assertThat(sum.with(List.of(new GpuCopy(0x1000 - 30, 0x4000, 30)))).isPresent();
    assertThat(sum.with(List.of(new GpuCopy(0x4010, 0x4000, 30)))).isEmpty();
    var finish = new Finish(1, false, 0x8000, 0x9000, 0xa000, 1);
    var finished =
        ReduceArguments.of(List.of(part), new Part(0x4000, ElementType.BF16), 3, 5, finish);
    assertThat(finished.with(List.of(new GpuCopy(0x800a, 0x4000, 30)))).isPresent();
    for (long used : List.of(0x8008L, 0x901cL, 0xa002L)) {
      assertThat(finished.with(List.of(new GpuCopy(used, 0x4000, 30)))).isEmpty();
    }
    var apart = new Part(0x4000, ElementType.BF16, 8);
    assertThat(ReduceArguments.of(List.of(part), apart, 3, 5, Finish.NONE).with(List.of(whole)))
        .isEmpty();
  }

  private static List<GpuCopy> copies(int from, int to) {
    return IntStream.range(from, to)
        .mapToObj(copy -> new GpuCopy(0x10000 + 0x100 * copy, 0x4000, 30))
        .toList();
  }

  @Test
  void besideAnFp8OutputBiasAndPreActivationAreBf16() {
    var wide = List.of(new Part(0x1000, ElementType.FP32));
    var sums = List.of(new Part(0x1000, ElementType.BF16), new Part(0x2000, ElementType.BF16));
    var narrow = List.of(new Part(0x1000, ElementType.E4M3));
    var finish = new Finish(1, false, 0x5002, 0x6010, 0, 0.5f);
    assertThat(kernel(wide, ElementType.E4M3, finish)).isEqualTo("reduce_fp32_e4m3");
    assertThat(kernel(sums, ElementType.E5M2, finish)).isEqualTo("reduce_bf16_e5m2");
    assertThat(kernel(narrow, ElementType.E4M3, Finish.NONE)).isEqualTo("reduce_e4m3_e4m3");
    assertThat(kernel(narrow, ElementType.E4M3, finish)).isEqualTo("reduce_any");
    assertThat(kernel(sums, ElementType.E4M3, new Finish(1, false, 0, 0x6008, 0, 1)))
        .isEqualTo("reduce_any");
    assertThatThrownBy(() -> kernel(wide, ElementType.E4M3, new Finish(1, false, 0x5001, 0, 0, 1)))
        .hasMessage("the bias of BF16 must lie at a multiple of 2 bytes but was at 5001");
  }

  private static String kernel(List<Part> parts, ElementType out, Finish finish) {
    return ReduceArguments.of(parts, new Part(0x4000, out), 3, 8, finish).kernel();
  }

  @Test
  void everyKernelItCanChooseIsLoaded() {
    assertThat(Kernels.names(false))
        .containsAll(ReduceArguments.FAST)
        .contains(ReduceArguments.ANY);
  }

  @Test
  void sumsThatTheKernelsCannotAddAreRefused() {
    var part = new Part(0x1000, ElementType.FP16);
    assertThatThrownBy(() -> sum(List.of(), 0x4000, ElementType.FP16))
        .hasMessage("a sum must have 1..16 parts but has 0");
    assertThatThrownBy(() -> sum(Collections.nCopies(17, part), 0x4000, ElementType.FP16))
        .hasMessage("a sum must have 1..16 parts but has 17");
    assertThatThrownBy(() -> sum(List.of(part), 0x4001, ElementType.FP16))
        .hasMessage("the sum of FP16 must lie at a multiple of 2 bytes but was at 4001");
  }
}
