package braid.internal.collective;

/// What a rank waits for, in one word, so that it is read whole.
///
/// @param peer the rank waited for; of no meaning where it waits for all or for none
/// @param number of the message, or of the collective
record WaitState(Kind kind, int epoch, int peer, int number) {
  /// For what a rank waits.
  enum Kind {
    /// For nobody.
    NOWHERE(0),
    /// For the peer to read a message.
    SENDS(1),
    /// For the peer to send a message.
    RECEIVES(2),
    /// For all others to come to a collective.
    COLLECTIVE(3);

    private final int code;

    Kind(int code) {
      this.code = code;
    }

    static Kind of(int code) {
      return switch (code) {
        case 0 -> NOWHERE;
        case 1 -> SENDS;
        case 2 -> RECEIVES;
        default -> COLLECTIVE;
      };
    }
  }

  static final WaitState NOWHERE = new WaitState(Kind.NOWHERE, 0, 0, 0);

  private static final int KIND_BITS = 2;
  private static final int EPOCH_BITS = 20;
  private static final int PEER_BITS = 12;
  private static final int NUMBER_BITS = Long.SIZE - KIND_BITS - EPOCH_BITS - PEER_BITS;

  /// Epochs and numbers are kept as far as there is room, which tells apart all that can meet.
  WaitState {
    epoch = cut(epoch, EPOCH_BITS);
    number = cut(number, NUMBER_BITS);
  }

  private static int cut(int value, int bits) {
    return value & ((1 << bits) - 1);
  }

  long bits() {
    long bits = kind.code;
    bits = bits << EPOCH_BITS | epoch;
    bits = bits << PEER_BITS | peer;
    return bits << NUMBER_BITS | number;
  }

  static WaitState of(long bits) {
    return new WaitState(
        Kind.of(field(bits, EPOCH_BITS + PEER_BITS + NUMBER_BITS, KIND_BITS)),
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

  /// As said by that rank: "rank 1 waits for rank 2 to receive".
  String text(int rank) {
    return "rank %d waits for %s"
        .formatted(
            rank,
            switch (kind) {
              case NOWHERE -> "nobody";
              case SENDS -> "rank %d to receive".formatted(peer);
              case RECEIVES -> "rank %d to send".formatted(peer);
              case COLLECTIVE -> "all ranks in a collective";
            });
  }
}
