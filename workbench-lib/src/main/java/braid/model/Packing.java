package braid.model;

import braid.model.Tokens.Run;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.CRC32;

/// Division of the tokens of an attention into sequences that do not see each other. Sequence i has
/// `cumulative[i + 1] - cumulative[i]` tokens from position `padded[i]` on; the positions after
/// them, up to `padded[i + 1]`, are padding. A sequence may be empty.
///
/// Queries and keys may differ in number. Both then have a packing of their own, and a sequence has
/// as many positions as the larger number of them. Their ends are aligned: the last query of a
/// sequence and its last key have one position, and masks compare positions as those of equal
/// numbers. A position without a query, or without a key, has no row in the tensors of these.
///
/// @param cumulative 0 and, for each sequence, the number of tokens up to its end, without padding
/// @param padded 0 and, for each sequence, the position at which its padding ends
/// @param sides queries and keys, if they differ
public record Packing(List<Integer> cumulative, List<Integer> padded, Optional<Sides> sides) {
  /// Rows of queries and rows of keys, each numbered from 0.
  public record Sides(Packing queries, Packing keys) {}

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

  /// Sequences with as many queries as keys.
  public Packing(List<Integer> cumulative, List<Integer> padded) {
    this(cumulative, padded, Optional.empty());
  }

  /// Returns sequences of queries and of keys.
  public static Packing of(Packing queries, Packing keys) {
    if (queries.equals(keys)) {
      return queries;
    }
    if (queries.sequences() != keys.sequences()) {
      throw new BraidException(
          "queries and keys must have as many sequences but have %d and %d; call packed(...) and then packedKeys(...) with a length for each sequence, 0 if it has none"
              .formatted(queries.sequences(), keys.sequences()));
    }
    long tokens = 0;
    long end = 0;
    var cumulative = new ArrayList<Integer>(List.of(0));
    var padded = new ArrayList<Integer>(List.of(0));
    for (int i = 0; i < queries.sequences(); i++) {
      long longer = Math.max(queries.length(i), keys.length(i));
      tokens += longer;
      end += longer + Math.max(queries.padding(i), keys.padding(i));
      if (end > Integer.MAX_VALUE) {
        throw new BraidException(
            "the longer of queries and keys must add up to less than 2^31 tokens but are %d at sequence %d; divide the batch"
                .formatted(end, i));
      }
      cumulative.add((int) tokens);
      padded.add((int) end);
    }
    return new Packing(cumulative, padded, Optional.of(new Sides(queries, keys)));
  }

  /// Returns the rows of the queries: their numbers are positions if there are as many keys.
  public Packing queries() {
    return sides.map(Sides::queries).orElse(this);
  }

  /// Returns the rows of the keys: their numbers are positions if there are as many queries.
  public Packing keys() {
    return sides.map(Sides::keys).orElse(this);
  }

  /// Returns the position of the first query of a sequence.
  public long firstQuery(int sequence) {
    return end(sequence) - queries().length(sequence);
  }

  /// Returns the position of the first key of a sequence.
  public long firstKey(int sequence) {
    return end(sequence) - keys().length(sequence);
  }

  private int length(int sequence) {
    return cumulative.get(sequence + 1) - cumulative.get(sequence);
  }

  private int padding(int sequence) {
    return padded.get(sequence + 1) - padded.get(sequence) - length(sequence);
  }

  /// Returns a sequence with its padding: its positions, or rows.
  Run whole(int sequence) {
    long start = start(sequence);
    return new Run(0, start, padded.get(sequence + 1) - start);
  }

  /// Returns the positions of some rows of the queries, or of the keys.
  ///
  /// @param rows [#queries] or [#keys]
  Stream<Run> placed(Packing rows, Run some) {
    if (sides.isEmpty()) {
      return Stream.of(some);
    }
    if (some.length() == 0) {
      return Stream.empty();
    }
    return IntStream.rangeClosed(rows.at(some.first()), rows.at(some.last()))
        .mapToObj(
            i -> {
              var part = some.within(rows.start(i), rows.padded.get(i + 1));
              long ahead = end(i) - rows.end(i);
              return new Run(part.row(), part.first() + ahead, part.length(), part.step());
            })
        .filter(run -> run.length() > 0);
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

  /// Returns the packing of the first queries only. A sequence that is cut keeps its ratio of keys.
  Packing first(int tokens) {
    if (sides.isEmpty()) {
      return cut(tokens);
    }
    var queries = queries().cut(tokens);
    var lengths = new ArrayList<Integer>(List.of(0));
    var ends = new ArrayList<Integer>(List.of(0));
    for (int i = 0; i < queries.sequences(); i++) {
      int before = queries().length(i);
      boolean complete = queries.length(i) == before;
      int length =
          complete
              ? keys().length(i)
              : (int) Math.ceilDiv((long) keys().length(i) * queries.length(i), before);
      lengths.add(lengths.getLast() + length);
      ends.add(ends.getLast() + length + (complete ? keys().padding(i) : 0));
    }
    return of(queries, new Packing(lengths, ends));
  }

  private Packing cut(int positions) {
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
    return start(sequence) + length(sequence);
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
  /// tells apart packings of as many. Queries and keys that differ have one text each.
  @Override
  public String toString() {
    if (sides.isPresent()) {
      return "%s of queries, %s of keys".formatted(queries(), keys());
    }
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
