package braid.internal.collective;

import braid.internal.shared.ControlMemory;
import braid.internal.shared.SignalWord;
import braid.model.Place;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// Memory in which two ranks of a group exchange messages, independently of all other ranks.
/// Messages of a pair are numbered, from 1 in each epoch. Each rank has one entry per peer:
///
/// | field | written by | meaning |
/// |---|---|---|
/// | posted | the sender, in the receiver's part | number of the latest message that is ready in the sender's tensor |
/// | header | the sender, in its own part | [MessageHeader] of the latest message |
/// | read | the receiver, in the sender's part | number of the latest message that was read or refused |
/// | refusal | the receiver, in its own part | reason why the latest refused message does not fit |
final class Mailbox implements AutoCloseable {
  private static final long ENTRY_BYTES = 1024;
  private static final long POSTED = 0;
  private static final long READ = 16;
  private static final long REFUSED = 32;
  private static final long HEADER = 64;
  private static final long REFUSAL = 512;

  /// Length field in front of a text.
  private static final int LENGTH_BYTES = Integer.BYTES;

  private static final int REFUSAL_BYTES = (int) (ENTRY_BYTES - REFUSAL) - LENGTH_BYTES;
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final Place place;
  private final ControlMemory memory;

  /// @param memory host memory of [#bytes] per rank
  Mailbox(Place place, ControlMemory memory) {
    this.place = place;
    this.memory = memory;
  }

  /// Bytes per rank.
  static long bytes(int ranks) {
    return ranks * ENTRY_BYTES;
  }

  /// Returns the entry that a rank has for a peer.
  private MemorySegment entry(int rank, int other) {
    return memory.part(rank).asSlice(place(other), ENTRY_BYTES);
  }

  private static long place(int other) {
    return other * ENTRY_BYTES;
  }

  /// Announces that this rank's message `number` is ready.
  void post(int to, int epoch, int number, MessageHeader header) {
    write(entry(place.rank(), to), HEADER, header.bytes(), MessageHeader.MAX_BYTES);
    memory.publish(place(to) + HEADER, LENGTH_BYTES + MessageHeader.MAX_BYTES);
    memory.raise(to, place(place.rank()) + POSTED, epoch, number);
  }

  /// Waits until message `number` is posted, for at most `nanos`. Returns whether it is.
  boolean awaitPosted(int from, int epoch, int number, long nanos) {
    return SignalWord.await(entry(place.rank(), from), POSTED, epoch, number, nanos);
  }

  /// Returns the header of the latest message from a rank.
  MessageHeader header(int from) {
    return MessageHeader.read(read(entry(from, place.rank()), HEADER, MessageHeader.MAX_BYTES));
  }

  /// Confirms that this rank has read message `number`.
  void acknowledge(int from, int epoch, int number) {
    memory.raise(from, place(place.rank()) + READ, epoch, number);
  }

  /// Refuses message `number`, with the reason.
  void refuse(int from, int epoch, int number, String reason) {
    var mine = entry(place.rank(), from);
    write(mine, REFUSAL, reason.getBytes(StandardCharsets.UTF_8), REFUSAL_BYTES);
    memory.publish(place(from) + REFUSAL, LENGTH_BYTES + REFUSAL_BYTES);
    WORD.setOpaque(mine, REFUSED, stamp(epoch, number));
    memory.publish(place(from) + REFUSED, Long.BYTES);
    acknowledge(from, epoch, number);
  }

  /// Waits until message `number` is read or refused, for at most `nanos`. Returns whether it is.
  boolean awaitRead(int to, int epoch, int number, long nanos) {
    return SignalWord.await(entry(place.rank(), to), READ, epoch, number, nanos);
  }

  boolean isRefused(int to, int epoch, int number) {
    return (long) WORD.getOpaque(entry(to, place.rank()), REFUSED) == stamp(epoch, number);
  }

  /// Returns the reason of the latest refusal.
  String refusal(int to) {
    return new String(
        read(entry(to, place.rank()), REFUSAL, REFUSAL_BYTES), StandardCharsets.UTF_8);
  }

  private static long stamp(int epoch, int number) {
    return ((long) epoch << Integer.SIZE) | number;
  }

  private static void write(MemorySegment entry, long offset, byte[] text, int limit) {
    int length = Math.min(text.length, limit);
    entry.set(ValueLayout.JAVA_INT, offset, length);
    MemorySegment.copy(
        Arrays.copyOf(text, length),
        0,
        entry,
        ValueLayout.JAVA_BYTE,
        offset + LENGTH_BYTES,
        length);
  }

  private static byte[] read(MemorySegment entry, long offset, int limit) {
    int length = Math.clamp(entry.get(ValueLayout.JAVA_INT, offset), 0, limit);
    var text = new byte[length];
    MemorySegment.copy(entry, ValueLayout.JAVA_BYTE, offset + LENGTH_BYTES, text, 0, length);
    return text;
  }

  @Override
  public void close() {
    memory.close();
  }
}
