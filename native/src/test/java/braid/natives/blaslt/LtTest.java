package braid.natives.blaslt;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.blaslt.Lt.Layout;
import braid.natives.blaslt.Lt.Problem;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Compares cublasLt with plain loops, on numbers so small that every type here holds every sum
/// exactly.
@SuppressWarnings("restricted")
class LtTest {
  private static final long BYTES = 1 << 20;
  private static final int PADDING = 8;

  /// Keeps the context open across tests, as a rank does.
  private static boolean held;

  private Gpu gpu;
  private Lt lt;
  private GpuStream stream;
  private long workspace;
  private final long[] device = new long[4];
  private final MemorySegment[] host = new MemorySegment[4];

  @BeforeEach
  void open() {
    var missing = Gpu.missing();
    assumeTrue(missing.isEmpty(), () -> missing.orElse(""));
    if (!held) {
      held = Gpu.open(0, "all tests").device() == 0;
    }
    gpu = Gpu.open(0, "the test");
    lt = Lt.open(gpu);
    stream = gpu.stream(gpu.leastPriority());
    workspace = gpu.allocate(Lt.WORKSPACE_BYTES);
    for (int i = 0; i < device.length; i++) {
      device[i] = gpu.allocate(BYTES);
      host[i] = MemorySegment.ofAddress(gpu.allocatePinned(BYTES)).reinterpret(BYTES);
    }
  }

  @AfterEach
  void close() {
    if (gpu != null) {
      for (int i = 0; i < device.length; i++) {
        gpu.free(device[i]);
        gpu.freePinned(host[i].address());
      }
      gpu.free(workspace);
      stream.close();
      lt.close();
      gpu.close();
    }
  }

  private static Layout layout(Lt.Type type, int rows, int columns, boolean transposed) {
    return new Layout(type, rows, columns, (transposed ? rows : columns) + PADDING, transposed);
  }

  private static void put(Lt.Type type, MemorySegment to, long index, int value) {
    int bits = Float.floatToRawIntBits(value);
    switch (type) {
      case FP32, TF32 -> to.setAtIndex(ValueLayout.JAVA_INT, index, bits);
      case BF16 -> to.setAtIndex(ValueLayout.JAVA_SHORT, index, (short) (bits >>> 16));
      case FP16 ->
          to.setAtIndex(ValueLayout.JAVA_SHORT, index, Float.floatToFloat16((float) value));
      case E4M3 -> to.setAtIndex(ValueLayout.JAVA_BYTE, index, E4M3[value]);
      case E5M2 -> to.setAtIndex(ValueLayout.JAVA_BYTE, index, E5M2[value]);
    }
  }

  /// Bits of 0 and 1.
  private static final byte[] E4M3 = {0, 0x38};

  private static final byte[] E5M2 = {0, 0x3c};

  private static float get(Lt.Type type, MemorySegment from, long index) {
    return switch (type) {
      case FP32, TF32 -> from.getAtIndex(ValueLayout.JAVA_FLOAT, index);
      case BF16 -> Float.intBitsToFloat(from.getAtIndex(ValueLayout.JAVA_SHORT, index) << 16);
      case FP16 -> Float.float16ToFloat(from.getAtIndex(ValueLayout.JAVA_SHORT, index));
      case E4M3, E5M2 -> throw new IllegalArgumentException("no result here is " + type);
    };
  }

  private static long index(Layout layout, int row, int column) {
    return layout.transposed() ? column * layout.stride() + row : row * layout.stride() + column;
  }

  private static int value(int index, int row, int column) {
    return (index * 5 + row * 3 + column * 7) % 11 % 2;
  }

  private void fill(int number, Layout layout) {
    host[number].fill((byte) 0);
    for (int row = 0; row < layout.rows(); row++) {
      for (int column = 0; column < layout.columns(); column++) {
        put(layout.type(), host[number], index(layout, row, column), value(number, row, column));
      }
    }
    gpu.copy(device[number], host[number].address(), BYTES);
  }

  @ParameterizedTest
  @CsvSource({
    "BF16, BF16, 64, 48, 32, false, false, true",
    "BF16, FP32, 33, 17, 9, false, true, false",
    "BF16, BF16, 40, 24, 56, true, false, true",
    "BF16, BF16, 7, 5, 3, true, true, false",
    "FP16, FP16, 64, 64, 64, false, true, true",
    "FP32, FP32, 31, 29, 13, false, false, true",
    "TF32, FP32, 64, 32, 48, false, true, true",
    "BF16, BF16, 1, 1, 1, false, false, false",
    "BF16, BF16, 1, 64, 64, false, true, true",
    "BF16, BF16, 64, 1, 64, false, false, false",
    "BF16, BF16, 64, 64, 1, false, false, true",
    "E4M3, BF16, 33, 48, 64, false, true, true",
    "E5M2, FP32, 16, 32, 48, false, true, false",
  })
  void aMultiplicationEqualsPlainLoops(
      Lt.Type type,
      Lt.Type result,
      int m,
      int n,
      int k,
      boolean transposedA,
      boolean transposedB,
      boolean bias) {
    var a = layout(type, m, k, transposedA);
    var b = layout(type == Lt.Type.E5M2 ? Lt.Type.E4M3 : type, k, n, transposedB);
    if (type == Lt.Type.E4M3 || type == Lt.Type.E5M2) { // rows must begin at multiples of 16
      a = new Layout(type, m, k, k + 16L, false);
      b = new Layout(b.type(), k, n, k + 16L, true);
    }
    var d = layout(result, m, n, false);
    var problem = new Problem(a, b, d, bias, 0, 1, 0, 0, 0);
    assertThat(lt.cannot(problem)).isEmpty();
    for (var plan : lt.candidates(problem, 3, Lt.WORKSPACE_BYTES)) {
      fill(0, a);
      fill(1, b);
      fill(2, d);
      fill(3, new Layout(result, 1, n, n, false));
      plan.run(stream, 2, device[0], device[1], 3, device[2], device[2], device[3], workspace);
      stream.copy(host[2].address(), device[2], BYTES);
      stream.synchronize();
      plan.close();
      for (int row = 0; row < m; row++) {
        for (int column = 0; column < n; column++) {
          var expected = 3 * value(2, row, column) + (bias ? value(3, 0, column) : 0);
          for (int i = 0; i < k; i++) {
            expected += 2 * value(0, row, i) * value(1, i, column);
          }
          assertThat(get(result, host[2], index(d, row, column)))
              .as("row %d, column %d of %s", row, column, problem)
              .isEqualTo(expected);
        }
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"0", "16"})
  void aBatchGoesOnAfterItsStrides(int smTarget) {
    var type = Lt.Type.FP32;
    var each = new Layout(type, 16, 16, 16, false);
    var all = new Layout(type, 48, 16, 16, false);
    var problem = new Problem(each, each, each, false, smTarget, 3, 256, 256, 256);
    fill(0, all);
    fill(1, all);
    var plan = lt.candidates(problem, 1, Lt.WORKSPACE_BYTES).getFirst();
    plan.run(stream, 1, device[0], device[1], 0, 0, device[2], 0, workspace);
    stream.copy(host[2].address(), device[2], BYTES);
    stream.synchronize();
    plan.close();
    for (int row = 0; row < 48; row++) {
      for (int column = 0; column < 16; column++) {
        var expected = 0;
        for (int i = 0; i < 16; i++) {
          expected += value(0, row, i) * value(1, row / 16 * 16 + i, column);
        }
        assertThat(get(type, host[2], index(all, row, column))).isEqualTo(expected);
      }
    }
  }

  @Test
  void aRestoredAlgorithmComputesTheSame() {
    var type = Lt.Type.BF16;
    var a = layout(type, 64, 32, false);
    var b = layout(type, 32, 48, true);
    var d = layout(type, 64, 48, false);
    var problem = new Problem(a, b, d, false, 0, 1, 0, 0, 0);
    fill(0, a);
    fill(1, b);
    for (var plan : lt.candidates(problem, 4, Lt.WORKSPACE_BYTES)) {
      var again = lt.restored(problem, plan.algorithm(), Lt.WORKSPACE_BYTES).orElseThrow();
      assertThat(again.algorithm()).isEqualTo(plan.algorithm());
      assertThat(again.workspaceBytes()).isEqualTo(plan.workspaceBytes());
      assertThat(result(again, d)).isEqualTo(result(plan, d));
      plan.close();
      again.close();
    }
    var other = new Layout(Lt.Type.FP32, 16, 16, 16, false);
    var ofFp32 = new Problem(other, other, other, false, 0, 1, 0, 0, 0);
    try (var unfit = lt.candidates(ofFp32, 1, Lt.WORKSPACE_BYTES).getFirst()) {
      assertThat(lt.restored(problem, unfit.algorithm(), Lt.WORKSPACE_BYTES)).isEmpty();
      var impossible = new Problem(a, a, d, false, 0, 1, 0, 0, 0);
      assertThat(lt.restored(impossible, unfit.algorithm(), Lt.WORKSPACE_BYTES)).isEmpty();
    }
  }

  private byte[] result(Lt.Plan plan, Layout d) {
    host[2].fill((byte) 0);
    gpu.copy(device[2], host[2].address(), BYTES);
    plan.run(stream, 1, device[0], device[1], 0, 0, device[2], 0, workspace);
    stream.copy(host[2].address(), device[2], BYTES);
    stream.synchronize();
    return host[2].asSlice(0, d.rows() * d.stride() * Short.BYTES).toArray(ValueLayout.JAVA_BYTE);
  }
}
