package braid.internal.pipeline;

import braid.internal.backend.PrivateMemory;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The unfused result that every way of a pipeline must come to.
public final class Reference {
  private Reference() {}

  /// Compares this rank's output, and says what is wrong first; nothing where all is right. Without
  /// a tolerance it is as exact as the inputs allow.
  public static Optional<String> compare(AllGatherGemm work, @Nullable Tolerance given) {
    var spec = work.spec;
    int columns = work.columns.length();
    try (var input = memory(work, spec.k());
        var result = memory(work, columns)) {
      // Gather, then multiply
      work.reference(input.segment(), result.segment());

      // Compare
      var tolerance =
          given != null
              ? given
              : Tolerance.fitting(
                  spec.dtype(),
                  spec.k(),
                  Tolerance.Range.of(spec.dtype(), input.segment()),
                  Tolerance.Range.of(spec.dtype(), work.weight()));
      return firstDifference(work, result.segment(), tolerance);
    }
  }

  private static Optional<String> firstDifference(
      AllGatherGemm work, MemorySegment expected, Tolerance tolerance) {
    var dtype = work.spec.dtype();
    int columns = work.columns.length();
    long count = (long) work.spec.m() * columns;
    for (long i = 0; i < count; i++) {
      float wanted = dtype.load(expected, i);
      float got = dtype.load(work.output(), i);
      if (!tolerance.allows(wanted, got)) {
        int row = Math.toIntExact(i / columns);
        return Optional.of(
            "rank %d: output[%d, %d] must be %s %s but was %s; first wrong is %s of %s, %s"
                .formatted(
                    work.place.rank(),
                    row,
                    i % columns,
                    wanted,
                    tolerance,
                    got,
                    chunk(work, row),
                    work.spec,
                    work.how));
      }
    }
    return Optional.empty();
  }

  /// Which piece of communication brought that row.
  private static String chunk(AllGatherGemm work, int row) {
    int source = 0;
    while (row >= work.rows(source).end()) {
      source++;
    }
    int chunk = 0;
    while (row >= work.rows(source).part(work.how.splits(), chunk).end()) {
      chunk++;
    }
    return "chunk %d from rank %d".formatted(chunk, source);
  }

  private static PrivateMemory memory(AllGatherGemm work, int columns) {
    return work.backend.allocate((long) work.spec.m() * columns * work.spec.dtype().bytes());
  }
}
