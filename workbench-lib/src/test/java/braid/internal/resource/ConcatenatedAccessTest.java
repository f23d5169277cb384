package braid.internal.resource;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.host.HostAccess;
import braid.model.DType;
import braid.natives.kernels.Integers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Test;

class ConcatenatedAccessTest {
  private static final int NUMBERS = 7;
  private static final DType TYPE = DType.BF16;

  private final Arena arena = Arena.ofAuto();

  /// Not side by side.
  private final List<MemorySegment> parts = List.of(part(), part(), part());

  private final ConcatenatedAccess pieces = new ConcatenatedAccess(HostAccess.HOST, parts);

  private MemorySegment part() {
    var room = arena.allocate(64L + (long) NUMBERS * TYPE.bytes());
    return room.asSlice(32, (long) NUMBERS * TYPE.bytes());
  }

  @Test
  void whatIsWrittenIsWhereItBelongsAndIsReadBack() {
    var values = new float[3 * NUMBERS];
    for (int i = 0; i < values.length; i++) {
      values[i] = i;
    }
    pieces.store(TYPE, values, pieces.whole());
    for (int i = 0; i < values.length; i++) {
      assertThat(TYPE.load(parts.get(i / NUMBERS), i % NUMBERS)).isEqualTo(i);
      assertThat(pieces.get(TYPE, pieces.whole(), i)).isEqualTo(i);
    }
    // A stretch over all seams.
    var some = new float[2 * NUMBERS];
    pieces.load(TYPE, pieces.whole().asSlice(3L * TYPE.bytes()), some);
    assertThat(some[0]).isEqualTo(3);
    assertThat(some[some.length - 1]).isEqualTo(3 + 2 * NUMBERS - 1);
  }

  @Test
  void fillsGoOverTheSeams() {
    pieces.fill(TYPE, pieces.whole().asSlice(TYPE.bytes()), 5);
    assertThat(pieces.get(TYPE, pieces.whole(), 0)).isZero();
    assertThat(pieces.get(TYPE, pieces.whole(), 1)).isEqualTo(5);
    assertThat(pieces.get(TYPE, pieces.whole(), 3 * NUMBERS - 1)).isEqualTo(5);
    pieces.fillIntegers(TYPE, pieces.whole(), 11);
    for (int i = 0; i < 3 * NUMBERS; i++) {
      assertThat(pieces.get(TYPE, pieces.whole(), i)).isEqualTo(Integers.at(11, i));
    }
  }
}
