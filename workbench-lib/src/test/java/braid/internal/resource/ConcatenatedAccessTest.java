package braid.internal.resource;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.host.HostAccess;
import braid.model.DType;
import braid.natives.kernels.Drawn;
import braid.natives.kernels.Integers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Test;

class ConcatenatedAccessTest {
  private static final int NUMBERS = 7;
  private static final DType TYPE = DType.BF16;

  private final Arena arena = Arena.ofAuto();

  /// Parts that are not side by side.
  private final List<MemorySegment> parts = List.of(part(), part(), part());

  private final ConcatenatedAccess access = new ConcatenatedAccess(HostAccess.HOST, parts);

  private MemorySegment part() {
    var memory = arena.allocate(64L + (long) NUMBERS * TYPE.bytes());
    return memory.asSlice(32, (long) NUMBERS * TYPE.bytes());
  }

  @Test
  void valuesAreStoredIntoTheRightParts() {
    var values = new float[3 * NUMBERS];
    for (int i = 0; i < values.length; i++) {
      values[i] = i;
    }
    access.store(TYPE, values, access.whole());
    for (int i = 0; i < values.length; i++) {
      assertThat(TYPE.load(parts.get(i / NUMBERS), i % NUMBERS)).isEqualTo(i);
      assertThat(access.get(TYPE, access.whole(), i)).isEqualTo(i);
    }
    // A range across all parts.
    var some = new float[2 * NUMBERS];
    access.load(TYPE, access.whole().asSlice(3L * TYPE.bytes()), some);
    assertThat(some[0]).isEqualTo(3);
    assertThat(some[some.length - 1]).isEqualTo(3 + 2 * NUMBERS - 1);
  }

  @Test
  void aFillCrossesParts() {
    access.fill(TYPE, access.whole().asSlice(TYPE.bytes()), 5);
    assertThat(access.get(TYPE, access.whole(), 0)).isZero();
    assertThat(access.get(TYPE, access.whole(), 1)).isEqualTo(5);
    assertThat(access.get(TYPE, access.whole(), 3 * NUMBERS - 1)).isEqualTo(5);
    access.draw(TYPE, access.whole(), Drawn.INTEGERS, 11);
    for (int i = 0; i < 3 * NUMBERS; i++) {
      assertThat(access.get(TYPE, access.whole(), i)).isEqualTo(Integers.at(11, i));
    }
    access.draw(TYPE, access.whole(), Drawn.REALS, 11);
    for (int i = 0; i < 3 * NUMBERS; i++) {
      assertThat(access.get(TYPE, access.whole(), i)).isEqualTo(TYPE.round(Drawn.REALS.at(11, i)));
    }
  }
}
