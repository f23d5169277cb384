package braid.internal.collective;

import braid.internal.resource.SymmetricMemory;
import braid.internal.shared.SignalWord;
import braid.model.Place;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// Memory by which two ranks of a group agree about a message while the others do something else.
/// Messages of a pair are numbered, from 1 in each epoch. Each rank has for every other one:
///
/// | what | written by | says |
/// |---|---|---|
/// | posted | the sender, in the receiver's part | that message lies ready in the sender's tensor |
/// | letter | the sender, in its own part | what it is |
/// | read | the receiver, in the sender's part | that message is read, or refused |
/// | refusal | the receiver, in its own part | why that message does not fit |
///
/// And for itself a [WaitState]: what it waits for, so that ranks that wait for each other are
/// found.
final class Mailbox implements AutoCloseable {
  private static final long STANDING_BYTES = 64;
  private static final long ENTRY_BYTES = 1024;
  private static final long POSTED = 0;
  private static final long READ = 16;
  private static final long REFUSED = 32;
  private static final long LETTER = 64;
  private static final long REFUSAL = 512;

  /// What a text takes beside its bytes.
  private static final int LENGTH_BYTES = Integer.BYTES;

  private static final int REFUSAL_BYTES = (int) (ENTRY_BYTES - REFUSAL) - LENGTH_BYTES;
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final Place place;
  private final SymmetricMemory memory;

  /// @param memory of the host, of [#bytes] on each rank
  Mailbox(Place place, SymmetricMemory memory) {
    this.place = place;
    this.memory = memory;
  }

  /// What a rank needs for its part.
  static long bytes(int ranks) {
    return STANDING_BYTES + ranks * ENTRY_BYTES;
  }

  /// What that rank has for the other one.
  private MemorySegment entry(int rank, int other) {
    return memory.on(rank).asSlice(STANDING_BYTES + other * ENTRY_BYTES, ENTRY_BYTES);
  }

  /// This rank's message of that number lies ready.
  void post(int to, int epoch, int number, MessageHeader letter) {
    write(entry(place.rank(), to), LETTER, letter.bytes(), MessageHeader.MAX_BYTES);
    SignalWord.raise(entry(to, place.rank()), POSTED, epoch, number);
  }

  /// Sleeps for at most that long until the message of that number lies ready.
  boolean awaitPosted(int from, int epoch, int number, long nanos) {
    return SignalWord.await(entry(place.rank(), from), POSTED, epoch, number, nanos);
  }

  boolean isPosted(int receiver, int from, int epoch, int number) {
    return SignalWord.reached(entry(receiver, from), POSTED, epoch, number);
  }

  /// What the message that lies ready is.
  MessageHeader letter(int from) {
    return MessageHeader.read(read(entry(from, place.rank()), LETTER, MessageHeader.MAX_BYTES));
  }

  /// This rank has read that message.
  void acknowledge(int from, int epoch, int number) {
    SignalWord.raise(entry(from, place.rank()), READ, epoch, number);
  }

  /// This rank does not take that message.
  void refuse(int from, int epoch, int number, String why) {
    var mine = entry(place.rank(), from);
    write(mine, REFUSAL, why.getBytes(StandardCharsets.UTF_8), REFUSAL_BYTES);
    WORD.setOpaque(mine, REFUSED, refused(epoch, number));
    acknowledge(from, epoch, number);
  }

  /// Sleeps for at most that long until the message of that number is read or refused.
  boolean awaitRead(int to, int epoch, int number, long nanos) {
    return SignalWord.await(entry(place.rank(), to), READ, epoch, number, nanos);
  }

  boolean isRead(int sender, int to, int epoch, int number) {
    return SignalWord.reached(entry(sender, to), READ, epoch, number);
  }

  boolean isRefused(int to, int epoch, int number) {
    return (long) WORD.getOpaque(entry(to, place.rank()), REFUSED) == refused(epoch, number);
  }

  /// Why the last message that was refused was.
  String refusal(int to) {
    return new String(
        read(entry(to, place.rank()), REFUSAL, REFUSAL_BYTES), StandardCharsets.UTF_8);
  }

  private static long refused(int epoch, int number) {
    return ((long) epoch << Integer.SIZE) | number;
  }

  /// From here on this rank stands there.
  void stand(WaitState standing) {
    WORD.setRelease(memory.on(place.rank()), 0L, standing.bits());
  }

  WaitState standing(int rank) {
    return WaitState.of((long) WORD.getAcquire(memory.on(rank), 0L));
  }

  private static void write(MemorySegment entry, long offset, byte[] text, int most) {
    int length = Math.min(text.length, most);
    entry.set(ValueLayout.JAVA_INT, offset, length);
    MemorySegment.copy(
        Arrays.copyOf(text, length),
        0,
        entry,
        ValueLayout.JAVA_BYTE,
        offset + LENGTH_BYTES,
        length);
  }

  private static byte[] read(MemorySegment entry, long offset, int most) {
    int length = Math.clamp(entry.get(ValueLayout.JAVA_INT, offset), 0, most);
    var text = new byte[length];
    MemorySegment.copy(entry, ValueLayout.JAVA_BYTE, offset + LENGTH_BYTES, text, 0, length);
    return text;
  }

  @Override
  public void close() {
    memory.close();
  }
}
