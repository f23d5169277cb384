package braid.internal.exchange;

/// Which rows of a matrix belong to which rank, and travel in which chunk.
public interface Layout {
  int parts();

  int chunks();

  /// The rows of that chunk that are that rank's; there may be none.
  Slice rows(int part, int chunk);

  /// The parts follow each other, and each is cut: what all ranks' chunk c has in common is its
  /// number.
  static Layout byPart(int total, int parts, Cut cut) {
    return new Layout() {
      @Override
      public int parts() {
        return parts;
      }

      @Override
      public int chunks() {
        return cut.chunks();
      }

      @Override
      public Slice rows(int part, int chunk) {
        return cut.of(Slice.of(total, parts, part), chunk);
      }
    };
  }

  /// The whole is cut, and every chunk is divided among the ranks: a chunk is rows that follow each
  /// other.
  static Layout byChunk(int total, int parts, Cut cut) {
    return new Layout() {
      @Override
      public int parts() {
        return parts;
      }

      @Override
      public int chunks() {
        return cut.chunks();
      }

      @Override
      public Slice rows(int part, int chunk) {
        return cut.of(new Slice(0, total), chunk).part(parts, part);
      }
    };
  }

  /// How many rows of a part come before that chunk's, where a part's rows are kept without gaps.
  default int offset(int part, int chunk) {
    int rows = 0;
    for (int before = 0; before < chunk; before++) {
      rows += rows(part, before).length();
    }
    return rows;
  }

  /// Rows of the largest part.
  default int longest() {
    int longest = 0;
    for (int part = 0; part < parts(); part++) {
      longest = Math.max(longest, offset(part, chunks()));
    }
    return longest;
  }
}
