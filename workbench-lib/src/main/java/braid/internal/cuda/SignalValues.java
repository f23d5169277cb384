package braid.internal.cuda;

/// What signals' words hold on GPUs: 64 bits that only grow, an epoch above a step.
///
/// Recorded work has its values in it, so a replay cannot count steps. Its words alternate between
/// two values of the epoch, waited for as they are: odd steps and even ones are recorded apart.
/// That is enough, also with iterations in flight, since no rank raises a word for the step after
/// the next before its waiter has passed the next: the raiser has waited for that rank in between
/// (the handshake of schedules says why, and replays on the host keep to two values too, so that
/// tests hold it).
public final class SignalValues {
  /// Above every step that is counted.
  private static final long RECORDED = 1L << 31;

  private SignalValues() {}

  public static long counted(int epoch, int step) {
    return ((long) epoch << Integer.SIZE) | Integer.toUnsignedLong(step);
  }

  public static long recorded(int epoch, int parity) {
    return ((long) epoch << Integer.SIZE) | RECORDED | (1 + parity);
  }

  /// Whether who waits for that value goes on with this word.
  public static boolean reached(long word, long value) {
    return (value & RECORDED) == 0 ? word >= value : word == value;
  }
}
