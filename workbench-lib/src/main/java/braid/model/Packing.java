package braid.model;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.IntStream;
import java.util.zip.CRC32;

/// Division of the tokens of an attention into sequences that do not see each other. Sequence i has
/// `cumulative[i + 1] - cumulative[i]` tokens from position `padded[i]` on; the positions after
/// them, up to `padded[i + 1]`, are padding. A sequence may be empty.
///
/// @param cumulative 0 and, for each sequence, the number of tokens up to its end, without padding
/// @param padded 0 and, for each sequence, the position at which its padding ends
public record Packing(List<Integer> cumulative, List<Integer> padded) {
  public Packing {
    cumulative = List.copyOf(cumulative);
    padded = List.copyOf(padded);
    checkCumulative("cumulative lengths", cumulative);
    checkCumulative("padded offsets", padded);
    if (cumulative.size() != padded.size()) {
      throw new BraidException(
          "padded offsets must be as many as cumulative lengths, %d, but were %d; give both of the same sequences"
              .formatted(cumulative.size(), padded.size()));
    }
    for (int i = 1; i < cumulative.size(); i++) {
      int tokens = cumulative.get(i) - cumulative.get(i - 1);
      int room = padded.get(i) - padded.get(i - 1);
      if (room < tokens) {
        throw new BraidException(
            "padded offsets must have room for each sequence but sequence %d has %d tokens and room for %d; try padded offset %d instead of %d"
                .formatted(i - 1, tokens, room, padded.get(i - 1) + tokens, padded.get(i)));
      }
    }
  }

  private static void checkCumulative(String name, List<Integer> offsets) {
    if (offsets.size() < 2) {
      throw new BraidException(
          "%s must be 0 and the end of each sequence but were %s; for example 0, 5, 12"
              .formatted(name, offsets));
    }
    if (offsets.getFirst() != 0) {
      throw new BraidException(
          "%s must begin at 0 but begin at %d; put 0 before them"
              .formatted(name, offsets.getFirst()));
    }
    for (int i = 1; i < offsets.size(); i++) {
      if (offsets.get(i) < offsets.get(i - 1)) {
        throw new BraidException(
            "%s must not fall but number %d is %d after %d; give sums of lengths, such as 0, 5, 12 for sequences of 5 and 7"
                .formatted(name, i, offsets.get(i), offsets.get(i - 1)));
      }
    }
  }

  /// Returns one sequence without padding.
  public static Packing single(int sequence) {
    var ends = List.of(0, sequence);
    return new Packing(ends, ends);
  }

  /// Returns sequences of equal length, without padding.
  static Packing equal(int count, int length) {
    var ends = IntStream.rangeClosed(0, count).map(i -> i * length).boxed().toList();
    return new Packing(ends, ends);
  }

  /// Returns the packing of the first positions only.
  Packing first(int positions) {
    if (positions < 1 || positions > positions()) {
      throw new BraidException(
          "the first tokens must be 1..%d but were %d".formatted(positions(), positions));
    }
    var tokens = new ArrayList<Integer>(List.of(0));
    var ends = new ArrayList<Integer>(List.of(0));
    for (int i = 0; i < sequences() && start(i) < positions; i++) {
      tokens.add(tokens.getLast() + (int) (Math.min(end(i), positions) - start(i)));
      ends.add(Math.min(padded.get(i + 1), positions));
    }
    return new Packing(tokens, ends);
  }

  /// Returns the number of positions of the longest sequence, padding included.
  public int longest() {
    int longest = 0;
    for (int i = 1; i < padded.size(); i++) {
      longest = Math.max(longest, padded.get(i) - padded.get(i - 1));
    }
    return longest;
  }

  /// Returns the number of sequences.
  public int sequences() {
    return cumulative.size() - 1;
  }

  /// Returns the number of positions of all sequences, padding included.
  public int positions() {
    return padded.getLast();
  }

  /// Returns the number of positions of padding.
  public int padding() {
    return padded.getLast() - cumulative.getLast();
  }

  /// Returns whether this is one sequence without padding.
  public boolean isSingle() {
    return sequences() == 1 && padding() == 0;
  }

  /// Returns the first position of a sequence.
  public long start(int sequence) {
    return padded.get(sequence);
  }

  /// Returns the end of a sequence's tokens, exclusive; the padding begins there.
  public long end(int sequence) {
    return start(sequence) + cumulative.get(sequence + 1) - cumulative.get(sequence);
  }

  /// Returns the sequence that a position belongs to, or whose padding it is.
  public int at(long position) {
    int low = 0;
    int high = sequences() - 1;
    while (low < high) {
      int middle = (low + high + 1) >>> 1;
      if (start(middle) <= position) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  /// Returns the first position from `position` on that is not padding; the end if there is none.
  public long skipPadding(long position) {
    if (padding() == 0) {
      return position;
    }
    int sequence = at(position);
    if (position < end(sequence)) {
      return position;
    }
    do {
      sequence++;
    } while (sequence < sequences() && start(sequence) == end(sequence));
    return sequence < sequences() ? start(sequence) : positions();
  }

  /// Returns the first position of padding from `position` on; the end if there is none.
  public long nextPadding(long position) {
    if (padding() == 0) {
      return positions();
    }
    int sequence = at(position);
    long from = Math.max(position, end(sequence));
    while (sequence + 1 < sequences() && from == start(sequence + 1)) {
      sequence++;
      from = end(sequence);
    }
    return from;
  }

  /// Returns number and length of equal sequences; of others number, padding, and a digest that
  /// tells apart packings of as many.
  @Override
  public String toString() {
    if (sequences() > 1 && positions() % sequences() == 0) {
      int length = positions() / sequences();
      if (equals(equal(sequences(), length))) {
        return "%d × %d".formatted(sequences(), length);
      }
    }
    var all = new ArrayList<>(cumulative);
    all.addAll(padded);
    var bytes = ByteBuffer.allocate(all.size() * Integer.BYTES);
    all.forEach(bytes::putInt);
    var digest = new CRC32();
    digest.update(bytes.array());
    return "%d sequence%s%s #%s"
        .formatted(
            sequences(),
            sequences() == 1 ? "" : "s",
            padding() == 0 ? "" : ", %d padding".formatted(padding()),
            HexFormat.of().toHexDigits((int) digest.getValue()));
  }
}
