package braid.natives.blaslt;

import static org.assertj.core.api.Assertions.assertThat;

import braid.natives.blaslt.Lt.Layout;
import braid.natives.blaslt.Lt.Problem;
import org.junit.jupiter.api.Test;

class RulesTest {
  private static final Lt.Type BF16 = Lt.Type.BF16;
  private static final Lt.Type E4M3 = Lt.Type.E4M3;

  private static Layout rows(Lt.Type type, int rows, int columns) {
    return new Layout(type, rows, columns, columns, false);
  }

  private static Layout columns(Lt.Type type, int rows, int columns) {
    return new Layout(type, rows, columns, rows, true);
  }

  private static Problem plain(Layout a, Layout b, Layout d) {
    return new Problem(a, b, d, false, 0, 1, 0, 0, 0);
  }

  private static void refuses(Problem problem, String reason) {
    assertThat(Rules.cannot(problem)).contains("cublasLt cannot: " + reason);
  }

  private static void takes(Problem problem) {
    assertThat(Rules.cannot(problem)).isEmpty();
  }

  @Test
  void everyLayoutAndTheSmallestSizesAreTaken() {
    takes(plain(rows(BF16, 3, 5), columns(BF16, 5, 7), rows(BF16, 3, 7)));
    takes(plain(columns(BF16, 3, 5), rows(BF16, 5, 7), rows(Lt.Type.FP32, 3, 7)));
    takes(plain(rows(BF16, 1, 1), rows(BF16, 1, 1), rows(BF16, 1, 1)));
    var tf32 = Lt.Type.TF32;
    takes(plain(rows(tf32, 2, 3), rows(tf32, 3, 4), rows(Lt.Type.FP32, 2, 4)));
  }

  @Test
  void anImpossibleMultiplicationIsRefused() {
    refuses(
        plain(rows(BF16, 3, 5), rows(BF16, 6, 7), rows(BF16, 3, 7)),
        "a is 3 x 5, b is 6 x 7 and d is 3 x 7, which cannot be multiplied");
    refuses(
        plain(rows(BF16, 3, 5), rows(BF16, 5, 7), columns(BF16, 3, 7)),
        "d is stored by columns and must be stored by rows");
    refuses(
        plain(rows(BF16, 0, 5), rows(BF16, 5, 7), rows(BF16, 0, 7)),
        "a is 0 x 5 and must be at least 1 x 1");
    refuses(
        plain(new Layout(BF16, 3, 5, 4, false), rows(BF16, 5, 7), rows(BF16, 3, 7)),
        "a has rows of 5 numbers that begin 4 apart");
    refuses(
        plain(new Layout(BF16, 3, 5, 2, true), rows(BF16, 5, 7), rows(BF16, 3, 7)),
        "a has rows of 3 numbers that begin 2 apart");
  }

  @Test
  void typesThatDoNotGoTogetherAreRefused() {
    refuses(
        plain(rows(BF16, 3, 5), rows(Lt.Type.FP16, 5, 7), rows(BF16, 3, 7)),
        "a is BF16 and b is FP16; they must be the same, or both fp8");
    refuses(
        plain(rows(BF16, 3, 5), rows(BF16, 5, 7), rows(Lt.Type.FP16, 3, 7)),
        "BF16 times BF16 gives one of [FP32, BF16] but d is FP16");
    var e5m2 = Lt.Type.E5M2;
    refuses(
        plain(rows(e5m2, 16, 16), columns(e5m2, 16, 16), rows(BF16, 16, 16)),
        "E5M2 times E5M2 is not supported; make one of them E4M3");
    refuses(
        plain(rows(E4M3, 16, 16), columns(E4M3, 16, 16), rows(e5m2, 16, 16)),
        "E4M3 times E4M3 gives one of [FP32, BF16, FP16, E4M3] but d is E5M2");
    takes(plain(rows(e5m2, 16, 16), columns(E4M3, 16, 16), rows(e5m2, 16, 16)));
  }

  @Test
  void fp8WantsItsLayoutAndMultiplesOfSixteen() {
    takes(plain(rows(E4M3, 5, 32), columns(E4M3, 32, 48), rows(BF16, 5, 48)));
    refuses(
        plain(rows(E4M3, 16, 32), rows(E4M3, 32, 48), rows(BF16, 16, 48)),
        "fp8 needs a stored by rows and b stored by columns");
    refuses(
        plain(rows(E4M3, 16, 40), columns(E4M3, 40, 48), rows(BF16, 16, 48)),
        "fp8 needs k and n in multiples of 16 but they are 40 and 48");
    refuses(
        plain(new Layout(E4M3, 16, 32, 40, false), columns(E4M3, 32, 48), rows(BF16, 16, 48)),
        "fp8 needs rows that begin at multiples of 16 bytes but those of a begin at multiples of 8");
    refuses(
        new Problem(
            rows(E4M3, 16, 32),
            columns(E4M3, 32, 48),
            rows(Lt.Type.FP32, 16, 48),
            true,
            0,
            1,
            0,
            0,
            0),
        "fp8 with a result in FP32 takes a bias in BF16 only; make the result BF16");
  }

  @Test
  void aBatchAndATargetHaveLeastSizes() {
    takes(batch(4, 0));
    refuses(batch(0, 0), "a batch must have at least 1 multiplication but has 0");
    refuses(batch(1, -1), "the target is -1 multiprocessors; 0 means all");
  }

  private static Problem batch(int count, int smTarget) {
    return new Problem(
        rows(BF16, 8, 16),
        rows(BF16, 16, 32),
        rows(BF16, 8, 32),
        true,
        smTarget,
        count,
        128,
        512,
        256);
  }

  @Test
  void alignmentFollowsFromStrides() {
    assertThat(rows(BF16, 8, 8192).alignmentBytes(0)).isEqualTo(256);
    assertThat(rows(BF16, 8, 40).alignmentBytes(0)).isEqualTo(16);
    assertThat(rows(BF16, 8, 7).alignmentBytes(0)).isEqualTo(2);
    assertThat(rows(BF16, 8, 128).alignmentBytes(4)).isEqualTo(8);
    assertThat(columns(Lt.Type.FP32, 12, 8).alignmentBytes(0)).isEqualTo(16);
  }

  @Test
  void fp8NeedsAGpuThatHasIt() {
    var fp8 = plain(rows(E4M3, 16, 16), columns(E4M3, 16, 16), rows(BF16, 16, 16));
    assertThat(Rules.cannot(fp8, "8.6"))
        .contains("cublasLt cannot: fp8 needs compute capability 8.9, found 8.6");
    assertThat(Rules.cannot(fp8, "8.9")).isEmpty();
    var bf16 = plain(rows(BF16, 16, 16), columns(BF16, 16, 16), rows(BF16, 16, 16));
    assertThat(Rules.cannot(bf16, "8.0")).isEmpty();
  }
}
