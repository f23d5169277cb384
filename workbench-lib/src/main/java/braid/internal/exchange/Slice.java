package braid.internal.exchange;

/// A balanced part of a range: the first `total % parts` parts have one more than the others.
public record Slice(int start, int length) {
  public static Slice of(int total, int parts, int index) {
    int shortest = total / parts;
    int longer = total % parts;
    return new Slice(
        index * shortest + Math.min(index, longer), shortest + (index < longer ? 1 : 0));
  }

  /// The first place after it.
  public int end() {
    return start + length;
  }

  public boolean contains(int place) {
    return place >= start && place < end();
  }

  /// A balanced part of this range.
  public Slice part(int parts, int index) {
    var inner = of(length, parts, index);
    return new Slice(start + inner.start, inner.length);
  }
}
