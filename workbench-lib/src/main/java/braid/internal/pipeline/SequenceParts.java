package braid.internal.pipeline;

import braid.model.AttentionSpec;
import braid.model.DType;
import braid.model.Tokens;
import braid.schedule.Part;
import java.util.Arrays;
import java.util.stream.IntStream;

/// Parts of an attention as numbers: of this rank's tokens, or of the whole sequence by position.
record SequenceParts(Plan plan, Peers peers, AttentionSpec spec) {
  private static final double LEAST_SCALE = 0x1p-100;

  /// Least positive number of e4m3.
  private static final double LEAST_ROUNDED = 0x1p-9;

  /// Last place of a number with 4 significant bits ÷ that of a double.
  private static final double SIGNIFICANCE = 0x1p49;

  /// Returns this rank's numbers of a part.
  float[] loaded(Part part) {
    var matrix = plan.matrix(part.tensor(spec));
    var numbers = new float[Math.multiplyExact(matrix.rows(), matrix.columns())];
    plan.backend().access().load(matrix.dtype(), matrix.bytes(), numbers);
    var slice = part.columnsOfTensor(spec);
    int columns = Math.toIntExact(slice.length());
    if (columns == matrix.columns()) {
      return numbers;
    }
    var own = new float[Math.multiplyExact(matrix.rows(), columns)];
    for (int row = 0; row < matrix.rows(); row++) {
      int from = row * matrix.columns() + (int) slice.start();
      System.arraycopy(numbers, from, own, row * columns, columns);
    }
    return own;
  }

  /// Returns the numbers of all ranks, by position. All ranks call it together.
  float[] gathered(Part part) {
    int ranks = plan.place().size();
    int columns = Math.toIntExact(part.columnsOfTensor(spec).length());
    long most =
        IntStream.range(0, ranks).mapToLong(rank -> tokens(part, rank).count()).max().orElseThrow();
    var parts =
        peers
            .gatherAll()
            .apply(
                "gather of the " + part,
                Arrays.copyOf(loaded(part), Math.toIntExact(most * columns)));
    var all = new float[Math.multiplyExact(spec.positions(), columns)];
    for (int rank = 0; rank < ranks; rank++) {
      for (var run : tokens(part, rank).consecutive()) {
        System.arraycopy(
            parts.get(rank),
            (int) run.row() * columns,
            all,
            (int) run.first() * columns,
            (int) run.length() * columns);
      }
    }
    if (spec.isRounded() && (part == Part.KEY || part == Part.VALUE)) {
      round(all);
    }
    return all;
  }

  /// Rounds heads as [AttentionSpec#exchanged] says, by plain arithmetic.
  private void round(float[] numbers) {
    int headSize = spec.headSize();
    float most = spec.dtype().largest();
    for (int head = 0; head < numbers.length; head += headSize) {
      double largest = 0;
      for (int i = head; i < head + headSize; i++) {
        largest = Math.max(largest, Math.abs((double) numbers[i]));
      }
      double scale = LEAST_SCALE;
      while (largest > DType.FP8_E4M3.largest() * scale && !Double.isInfinite(scale)) {
        scale *= 2;
      }
      boolean finite = Double.isFinite(largest);
      for (int i = head; i < head + headSize; i++) {
        double scaled = numbers[i] / scale;
        double step = Math.max(Math.ulp(scaled) * SIGNIFICANCE, LEAST_ROUNDED);
        double rounded = Math.rint(scaled / step) * step * scale;
        numbers[i] = finite ? (float) Math.clamp(rounded, -most, most) : Float.NaN;
      }
    }
  }

  private Tokens tokens(Part part, int rank) {
    return part.tokens(spec, plan.place().size(), rank);
  }
}
