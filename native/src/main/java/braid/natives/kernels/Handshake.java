package braid.natives.kernels;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/// The words that a kernel raises and waits for, before its work and after it. Created once and
/// launched any number of times, each time with another value.
public final class Handshake {
  /// Most words of each kind.
  public static final int MOST_WORDS = 16;

  // Offsets in the kernel's struct Handshake.
  private static final long VALUE = 512;
  private static final long ARRIVED = 520;
  private static final long COUNTS = 528;
  private static final long EXACT = 544;
  private static final long BYTES = 552;

  /// Neither raises nor waits.
  static final Handshake NONE = new Handshake(0, List.of(), List.of(), List.of(), List.of());

  private final boolean waits;
  private final MemorySegment bytes = Arena.ofAuto().allocate(BYTES, Long.BYTES);

  /// @param arrived address of a 32-bit counter for launches that do not overlap, 0 at first
  /// @param raisedFirst addresses of the 64-bit words that a kernel raises before its work
  /// @param awaitedFirst the words that it waits for before its work
  /// @param raisedLast the words that it raises after its work
  /// @param awaitedLast the words that it waits for after its work
  public Handshake(
      long arrived,
      List<Long> raisedFirst,
      List<Long> awaitedFirst,
      List<Long> raisedLast,
      List<Long> awaitedLast) {
    waits = !awaitedFirst.isEmpty();
    bytes.set(ValueLayout.JAVA_LONG, ARRIVED, arrived);
    var kinds = List.of(raisedFirst, awaitedFirst, raisedLast, awaitedLast);
    for (int kind = 0; kind < kinds.size(); kind++) {
      var words = kinds.get(kind);
      if (words.size() > MOST_WORDS) {
        throw new IllegalArgumentException(
            "a kernel must raise or await 0..%d words but has %d"
                .formatted(MOST_WORDS, words.size()));
      }
      for (int i = 0; i < words.size(); i++) {
        bytes.setAtIndex(ValueLayout.JAVA_LONG, (long) kind * MOST_WORDS + i, words.get(i));
      }
      bytes.set(ValueLayout.JAVA_INT, COUNTS + (long) kind * Integer.BYTES, words.size());
    }
  }

  /// Sets the value that the next launches write into words and wait for.
  ///
  /// @param exact true if awaited words must equal it, false if they may exceed it
  public void set(long value, boolean exact) {
    bytes.set(ValueLayout.JAVA_LONG, VALUE, value);
    bytes.set(ValueLayout.JAVA_INT, EXACT, exact ? 1 : 0);
  }

  /// Returns whether a kernel waits before its work.
  boolean waits() {
    return waits;
  }

  MemorySegment bytes() {
    return bytes;
  }
}
