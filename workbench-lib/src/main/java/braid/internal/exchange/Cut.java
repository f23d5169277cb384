package braid.internal.exchange;

import java.util.List;

/// Where the ranks' parts are cut into chunks: evenly, or at given rows of the largest part.
///
/// @param boundaries from 0 to the end of the largest part; none to cut evenly
public record Cut(int chunks, List<Integer> boundaries) {
  /// All in one piece.
  public static final Cut WHOLE = new Cut(1, List.of());

  /// That chunk of a part; empty where the part is too short for it.
  public Slice of(Slice part, int chunk) {
    if (boundaries.isEmpty()) {
      return part.part(chunks, chunk);
    }
    int start = Math.min(boundaries.get(chunk), part.length());
    int end = Math.min(boundaries.get(chunk + 1), part.length());
    return new Slice(part.start() + start, end - start);
  }
}
