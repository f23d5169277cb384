package braid.internal.cuda;

/// Values of signal words on GPUs: 64 bits that only grow, an epoch above a step.
///
/// A graph contains its values, so its replays cannot count steps. Its words alternate between two
/// values of the epoch, one recorded for odd steps and one for even steps, and waits compare for
/// equality. Two values are enough, also with iterations in flight: no rank raises a word for the
/// step after the next before its waiter has passed the next step, since the raiser has waited for
/// that rank in between (see the handshake of schedules). Replays on the host use two values too,
/// so that tests cover this.
public final class SignalValues {
  /// Bit above all counted steps.
  private static final long RECORDED = 1L << 31;

  private SignalValues() {}

  public static long counted(int epoch, int step) {
    return ((long) epoch << Integer.SIZE) | Integer.toUnsignedLong(step);
  }

  public static long recorded(int epoch, int parity) {
    return ((long) epoch << Integer.SIZE) | RECORDED | (1 + parity);
  }

  /// Returns true if a wait for `value` ends with this word.
  public static boolean reached(long word, long value) {
    return (value & RECORDED) == 0 ? word >= value : word == value;
  }
}
