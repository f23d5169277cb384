package braid.internal.cuda.device;

import static org.assertj.core.api.Assertions.assertThat;

import braid.natives.blaslt.Lt;
import org.junit.jupiter.api.Test;

class AlgorithmTimerTest {
  @Test
  void resultBytesCoverAllResultsOfABatch() {
    var a = new Lt.Layout(Lt.Type.BF16, 4, 8, 8, false);
    var b = new Lt.Layout(Lt.Type.BF16, 8, 16, 16, false);
    var d = new Lt.Layout(Lt.Type.BF16, 4, 16, 16, false);
    var one = new Lt.Problem(a, b, d, false, 0, 1, 0, 0, 0);
    assertThat(AlgorithmTimer.resultBytes(one)).isEqualTo(4 * 16 * 2);
    // Three results, ten rows apart.
    var three = new Lt.Problem(a, b, d, false, 0, 3, 10 * 8, 0, 10 * 16);
    assertThat(AlgorithmTimer.resultBytes(three)).isEqualTo((20 * 16 + 4 * 16) * 2);
  }
}
