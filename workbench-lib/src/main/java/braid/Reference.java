package braid;

import braid.internal.backend.PrivateMemory;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The unfused result that every way of a pipeline must come to.
final class Reference {
  private Reference() {}

  /// Compares this rank's output, and says what is wrong first; nothing where all is right.
  static Optional<String> compare(AllGatherGemm work, @Nullable Tolerance given) {
    var spec = work.spec;
    int columns = work.columns.length();
    try (var input = memory(work, spec.k());
        var result = memory(work, columns)) {
      // Gather, then multiply
      work.reference(input.segment(), result.segment());

      // Compare
      var whole = new Tensor(shape(spec.m(), spec.k()), spec.dtype(), input.segment());
      var expected = new Tensor(shape(spec.m(), columns), spec.dtype(), result.segment());
      var tolerance =
          given != null
              ? given
              : Tolerance.fitting(
                  spec.dtype(),
                  spec.k(),
                  Tolerance.Range.of(whole),
                  Tolerance.Range.of(work.weight()));
      return firstDifference(work, expected, tolerance);
    }
  }

  private static Optional<String> firstDifference(
      AllGatherGemm work, Tensor expected, Tolerance tolerance) {
    var output = work.output();
    for (int row = 0; row < work.spec.m(); row++) {
      for (int column = 0; column < work.columns.length(); column++) {
        float wanted = expected.get(row, column);
        float got = output.get(row, column);
        if (!tolerance.allows(wanted, got)) {
          return Optional.of(
              "rank %d: output[%d, %d] must be %s %s but was %s; first wrong is %s of %s, %s"
                  .formatted(
                      work.place.rank(),
                      row,
                      column,
                      wanted,
                      tolerance,
                      got,
                      chunk(work, row),
                      work.spec,
                      work.how));
        }
      }
    }
    return Optional.empty();
  }

  /// Which piece of communication brought that row.
  private static String chunk(AllGatherGemm work, int row) {
    int source = 0;
    while (row >= work.rows(source).start() + work.rows(source).length()) {
      source++;
    }
    int within = row - work.rows(source).start();
    int splits = work.how.splits();
    int chunk = 0;
    while (within >= end(Slice.of(work.rows(source).length(), splits, chunk))) {
      chunk++;
    }
    return "chunk %d from rank %d".formatted(chunk, source);
  }

  private static int end(Slice slice) {
    return slice.start() + slice.length();
  }

  private static PrivateMemory memory(AllGatherGemm work, int columns) {
    return work.backend.allocate((long) work.spec.m() * columns * work.spec.dtype().bytes());
  }

  private static List<Long> shape(int rows, int columns) {
    return List.of((long) rows, (long) columns);
  }
}
