package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.host.HostAccess;
import braid.internal.resource.BoundsResult;
import braid.internal.resource.ErrorBound;
import braid.internal.resource.Inspection;
import braid.internal.resource.Interval;
import braid.internal.resource.Lifetime;
import braid.internal.resource.Range;
import braid.model.BraidException;
import braid.model.DType;
import braid.natives.kernels.Drawn;
import braid.natives.kernels.Integers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Tensors in memory that the host cannot touch: all access is by transfers.
class FarTensorTest {
  /// Offset of fake addresses, far beyond the real bytes, so that no code can read them directly.
  private static final long FAR = 1L << 60;

  /// Memory at fake addresses that only this class translates.
  private static final class Far implements Inspection {
    private int reads;
    private int writes;

    @SuppressWarnings("restricted") // It is taken back before anybody reads.
    MemorySegment place(MemorySegment near) {
      return MemorySegment.ofAddress(near.address() + FAR).reinterpret(near.byteSize());
    }

    @SuppressWarnings("restricted") // [#place] has made it.
    private MemorySegment near(MemorySegment far) {
      return MemorySegment.ofAddress(far.address() - FAR).reinterpret(far.byteSize());
    }

    @Override
    public void read(MemorySegment from, MemorySegment target) {
      reads++;
      assertThat(target.isNative()).isTrue();
      assertThat(target.byteSize()).isEqualTo(from.byteSize());
      target.copyFrom(near(from));
    }

    @Override
    public void write(MemorySegment from, MemorySegment to) {
      writes++;
      assertThat(from.isNative()).isTrue();
      assertThat(to.byteSize()).isEqualTo(from.byteSize());
      near(to).copyFrom(from);
    }

    @Override
    public void copy(MemorySegment from, MemorySegment to) {
      near(to).copyFrom(near(from));
    }

    @Override
    public void fill(DType dtype, MemorySegment memory, float value) {
      HostAccess.HOST.fill(dtype, near(memory), value);
    }

    @Override
    public void draw(DType dtype, MemorySegment memory, Drawn numbers, long seed) {
      HostAccess.HOST.draw(dtype, near(memory), numbers, seed);
    }

    @Override
    public Range range(DType dtype, MemorySegment memory) {
      return HostAccess.HOST.range(dtype, near(memory));
    }

    @Override
    public long firstDifference(
        DType expectedType,
        MemorySegment expected,
        DType gotType,
        MemorySegment got,
        double atol,
        double rtol) {
      return HostAccess.HOST.firstDifference(
          expectedType, near(expected), gotType, near(got), atol, rtol);
    }

    @Override
    public void sizes(DType dtype, MemorySegment from, MemorySegment to) {
      HostAccess.HOST.sizes(dtype, near(from), near(to));
    }

    @Override
    public void widen(
        MemorySegment low, MemorySegment high, MemorySegment sizes, ErrorBound bound) {
      HostAccess.HOST.widen(near(low), near(high), near(sizes), bound);
    }

    @Override
    public BoundsResult judge(Interval expected, DType gotType, MemorySegment got) {
      return HostAccess.HOST.judge(
          new Interval(
              expected.dtype(),
              near(expected.expected()),
              near(expected.low()),
              near(expected.high()),
              expected.activated(),
              expected.outScale()),
          gotType,
          near(got));
    }
  }

  private static TensorView tensor(Far far, Arena arena, DType dtype, long rows, long columns) {
    var near = arena.allocate(rows * columns * dtype.bytes(), Long.BYTES);
    return new TensorView(List.of(rows, columns), dtype, far.place(near), far);
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void numbersGoThereAndBack(DType dtype) {
    var far = new Far();
    try (var arena = Arena.ofConfined()) {
      var x = tensor(far, arena, dtype, 2, 3).copyFrom(1, 2, 3, 4, 5, 6);
      x.set(-1, 1, 1);
      assertThat(x.get(1, 1)).isEqualTo(-1);
      assertThat(x.toFloats()).containsExactly(1, 2, 3, 4, -1, 6);
      assertThat(x.rows(1, 1).toFloats()).containsExactly(4, -1, 6);
      assertThat(x.rows(1, 1).fill(2).toFloats()).containsExactly(2, 2, 2);
      assertThat(x).hasToString("2x3 %s [1.0, 2.0, 3.0, 2.0, 2.0, 2.0]".formatted(dtype));
      assertThat(x.rows(2, 0).toFloats()).isEmpty();
    }
  }

  @Test
  void theHostIsToldHowToGetAtThem() {
    var far = new Far();
    try (var arena = Arena.ofConfined()) {
      var x = tensor(far, arena, DType.BF16, 2, 3);
      assertThatThrownBy(x::segment)
          .isInstanceOf(BraidException.class)
          .hasMessage(
              "the host cannot read the memory of this 2x3 bf16 itself; use toFloats() or"
                  + " copyFrom(...)");
    }
  }

  @Test
  void manyNumbersTakeFewTransfersOfBoundedSize() {
    var far = new Far();
    try (var arena = Arena.ofConfined()) {
      int count = (5 << 20) / 2;
      var x = tensor(far, arena, DType.FP32, 1, count);
      var values = new float[count];
      for (int i = 0; i < count; i++) {
        values[i] = i;
      }
      x.copyFrom(values);
      assertThat(Arrays.equals(x.toFloats(), values)).isTrue();
      // 10 MiB by 4 MiB.
      assertThat(far.writes).isEqualTo(3);
      assertThat(far.reads).isEqualTo(3);
    }
  }

  @Test
  void aTensorTakesAnothersValues() {
    LocalRanks.run(
        1,
        world -> {
          try (var x = SymmetricTensor.on(world).shape(2, 3).dtype(DType.FP32).allocate();
              var y = SymmetricTensor.on(world).shape(3, 2).dtype(DType.FP32).allocate();
              var narrow = SymmetricTensor.on(world).shape(6).dtype(DType.BF16).allocate()) {
            x.local().copyFrom(1, 2, 3, 4, 5, 1.001f);
            assertThat(y.local().copyFrom(x.local()).toFloats())
                .containsExactly(1, 2, 3, 4, 5, 1.001f);
            assertThat(narrow.local().copyFrom(x.local()).toFloats())
                .containsExactly(1, 2, 3, 4, 5, 1);
            assertThatThrownBy(() -> y.local().copyFrom(x.local().rows(0, 1)))
                .hasMessageContaining("copyFrom needs a tensor of 6 values");
          }
        });
  }

  /// As on a GPU, where the memory of a view may belong to another tensor already.
  @Test
  void aViewThatEndedReachesNothingWhereAccessGoesByAddress() {
    var far = new Far();
    try (var arena = Arena.ofConfined()) {
      var near = arena.allocate(24, Long.BYTES);
      TensorView view;
      try (var lifetime = new Lifetime()) {
        var memory = lifetime.of(far.place(near));
        view =
            new TensorView(List.of(2L, 3L), DType.FP32, List.of(memory), () -> "it is closed", far);
        view.fill(1);
      }
      var other = tensor(far, arena, DType.FP32, 2, 3);
      for (var use :
          List.<ThrowingCallable>of(
              () -> view.fill(2),
              () -> view.fillIntegers(2),
              () -> view.set(2, 0, 0),
              () -> view.get(0, 0),
              view::toFloats,
              view::segment,
              () -> view.rows(0, 1),
              () -> view.copyFrom(1, 2, 3, 4, 5, 6),
              () -> view.copyFrom(other),
              () -> other.copyFrom(view))) {
        assertThatThrownBy(use).isInstanceOf(BraidException.class);
      }
      assertThatThrownBy(() -> view.fill(2)).hasMessage("it is closed");
      assertThat(view).hasToString("2x3 fp32 [it is closed]");
      assertThat(near.toArray(ValueLayout.JAVA_FLOAT)).containsOnly(1);
    }
  }

  @Test
  @SuppressWarnings("restricted") // Nobody looks into it.
  void moreValuesThanAnArrayHoldsAreRefusedInOneLine() {
    var far = new Far();
    var memory = MemorySegment.ofAddress(FAR).reinterpret(4L << 32);
    var large = new TensorView(List.of(1L << 16, 1L << 16), DType.FP32, memory, far);
    assertThatThrownBy(large::toFloats)
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "toFloats returns at most 2147483639 values but 65536x65536 has 4294967296; call it on"
                + " rows(start, count)");
    assertThatThrownBy(() -> large.copyFrom(1, 2))
        .hasMessageStartingWith("copyFrom needs 4294967296 values");
  }

  @Test
  void otherTypesAreCopiedInChunksWhereverTheyLie() {
    int count = (1 << 20) + 7;
    var far = new Far();
    try (var arena = Arena.ofConfined()) {
      var from = tensor(far, arena, DType.FP32, 1, count).fillIntegers(5);
      var to = tensor(new Far(), arena, DType.BF16, 1, count).copyFrom(from);
      assertThat(to.toFloats()).isEqualTo(Integers.first(5, count));
    }
  }
}
