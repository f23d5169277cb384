package braid.internal.collective;

/// The operation that a rank waits in, packed into one word so that other ranks read it atomically.
///
/// @param peer the rank waited for; unused for [Operation#NONE] and [Operation#COLLECTIVE]
/// @param number of the message, or of the collective
record WaitState(Operation operation, int epoch, int peer, int number) {
  /// Kinds of waits.
  enum Operation {
    /// Does not wait.
    NONE(0),
    /// Waits for the peer to read a message.
    SEND(1),
    /// Waits for the peer to send a message.
    RECEIVE(2),
    /// Waits for all other ranks to reach a collective.
    COLLECTIVE(3);

    private final int code;

    Operation(int code) {
      this.code = code;
    }

    static Operation of(int code) {
      return switch (code) {
        case 0 -> NONE;
        case 1 -> SEND;
        case 2 -> RECEIVE;
        default -> COLLECTIVE;
      };
    }
  }

  static final WaitState NONE = new WaitState(Operation.NONE, 0, 0, 0);

  private static final int OPERATION_BITS = 2;
  private static final int EPOCH_BITS = 20;
  private static final int PEER_BITS = 12;
  private static final int NUMBER_BITS = Long.SIZE - OPERATION_BITS - EPOCH_BITS - PEER_BITS;

  /// Truncates epoch and number to their bits, which still distinguishes all that can occur at one
  /// time.
  WaitState {
    epoch = cut(epoch, EPOCH_BITS);
    number = cut(number, NUMBER_BITS);
  }

  private static int cut(int value, int bits) {
    return value & ((1 << bits) - 1);
  }

  long bits() {
    long bits = operation.code;
    bits = bits << EPOCH_BITS | epoch;
    bits = bits << PEER_BITS | peer;
    return bits << NUMBER_BITS | number;
  }

  static WaitState of(long bits) {
    return new WaitState(
        Operation.of(field(bits, EPOCH_BITS + PEER_BITS + NUMBER_BITS, OPERATION_BITS)),
        field(bits, PEER_BITS + NUMBER_BITS, EPOCH_BITS),
        field(bits, NUMBER_BITS, PEER_BITS),
        field(bits, 0, NUMBER_BITS));
  }

  private static int field(long bits, int after, int wide) {
    return cut((int) (bits >>> after), wide);
  }

  boolean isOf(int which) {
    return epoch == cut(which, EPOCH_BITS);
  }

  /// Describes the wait for messages: "rank 1 waits for rank 2 to receive".
  String text(int rank) {
    return "rank %d waits for %s"
        .formatted(
            rank,
            switch (operation) {
              case NONE -> "nothing";
              case SEND -> "rank %d to receive".formatted(peer);
              case RECEIVE -> "rank %d to send".formatted(peer);
              case COLLECTIVE -> "all ranks in a collective";
            });
  }
}
