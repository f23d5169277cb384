package braid.internal.run;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.DType;
import braid.schedule.Buffer;
import braid.schedule.Slice;
import braid.schedule.Step.Tile;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class TileRunTest {
  private static final Buffer INPUT = Buffer.of("input", DType.FP32, 1, 100, 1, false);
  private static final Buffer OUTPUT = Buffer.of("output", DType.FP32, 1, 100, 1, false);

  private static Tile tile(Slice from, Slice to) {
    return new Tile(INPUT.on(0, from), OUTPUT.on(0, to));
  }

  private static Tile tile(int start, int length) {
    return tile(new Slice(start, length), new Slice(start, length));
  }

  private static List<TileRun> runs(Tile... tiles) {
    return TileRun.of(Arrays.asList(tiles));
  }

  @Test
  void evenlySpacedSlicesOfOneLengthAreOneRun() {
    assertThat(runs(tile(24, 2), tile(8, 2), tile(16, 2)))
        .containsExactly(new TileRun(tile(8, 2), 3, 8, 8));
  }

  @Test
  void aGapOrAnotherLengthBeginsAnother() {
    assertThat(runs(tile(0, 2), tile(8, 2), tile(24, 2)))
        .containsExactly(new TileRun(tile(0, 2), 2, 8, 8), new TileRun(tile(24, 2), 1, 0, 0));
    assertThat(runs(tile(0, 3), tile(8, 2), tile(16, 2)))
        .containsExactly(new TileRun(tile(0, 3), 1, 0, 0), new TileRun(tile(8, 2), 2, 8, 8));
  }

  @Test
  void tilesMayBeFartherApartInTheOutput() {
    var first = tile(new Slice(0, 2), new Slice(0, 2));
    var second = tile(new Slice(2, 2), new Slice(9, 2));
    var third = tile(new Slice(4, 2), new Slice(18, 2));
    assertThat(runs(first, second, third)).containsExactly(new TileRun(first, 3, 2, 9));
    var uneven = tile(new Slice(4, 2), new Slice(17, 2));
    assertThat(runs(first, second, uneven))
        .containsExactly(new TileRun(first, 2, 2, 9), new TileRun(uneven, 1, 0, 0));
    var overlapping = tile(new Slice(2, 2), new Slice(1, 2));
    assertThat(runs(first, overlapping))
        .containsExactly(new TileRun(first, 1, 0, 0), new TileRun(overlapping, 1, 0, 0));
  }
}
