package braid.natives;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/// One message between mailboxes: the sender's number and a file descriptor. The descriptor travels
/// as ancillary data (SCM_RIGHTS): the kernel creates a new descriptor of the same open file in the
/// receiver.
record FdMessage(int sender, int fd) {
  static final int SEND_FLAGS = 0x4000; // MSG_NOSIGNAL: a closed peer is an error, not a signal
  static final int RECEIVE_FLAGS = 0x40000000; // MSG_CMSG_CLOEXEC

  /// A received message. The receiver closes all its descriptors. `sender` is -1 if the bytes are
  /// not those of a mailbox. `lost` is true if the kernel could not deliver a descriptor that was
  /// sent.
  record Received(ReceiveState state, int sender, List<Integer> fds, boolean lost) {}

  enum ReceiveState {
    NOTHING_YET,
    CLOSED,
    MESSAGE
  }

  static final Received NOTHING_YET = new Received(ReceiveState.NOTHING_YET, -1, List.of(), false);
  private static final Received CLOSED = new Received(ReceiveState.CLOSED, -1, List.of(), false);

  private static final int MAGIC = 0x62726664;
  private static final int BODY_BYTES = 8;
  private static final int MSG_CTRUNC = 8;
  private static final int SOL_SOCKET = 1;
  private static final int SCM_RIGHTS = 1;

  // struct msghdr and struct cmsghdr of 64-bit Linux
  private static final int HEADER_BYTES = 56;
  private static final int VECTOR_OFFSET = 16;
  private static final int VECTORS_OFFSET = 24;
  private static final int CONTROL_OFFSET = 32;
  private static final int CONTROL_BYTES_OFFSET = 40;
  private static final int FLAGS_OFFSET = 48;
  private static final int VECTOR_BYTES = 16;
  private static final int LEVEL_OFFSET = 8;
  private static final int TYPE_OFFSET = 12;
  private static final int DATA_OFFSET = 16;

  /// Space for exactly one descriptor, so that the kernel never installs a second one.
  private static final int CONTROL_BYTES = DATA_OFFSET + Integer.BYTES;

  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

  /// Returns a message header whose body and ancillary data are in the same arena.
  MemorySegment encode(Arena arena) {
    var header = emptyHeader(arena);
    var body = body(header);
    body.set(INT, 0, MAGIC);
    body.set(INT, Integer.BYTES, sender);
    var control = control(header, CONTROL_BYTES);
    control.set(LONG, 0, CONTROL_BYTES);
    control.set(INT, LEVEL_OFFSET, SOL_SOCKET);
    control.set(INT, TYPE_OFFSET, SCM_RIGHTS);
    control.set(INT, DATA_OFFSET, fd);
    return header;
  }

  /// Returns an empty message header with space for one encoded message.
  static MemorySegment emptyHeader(Arena arena) {
    var body = arena.allocate(BODY_BYTES, Long.BYTES);
    var vector = arena.allocate(VECTOR_BYTES, Long.BYTES);
    vector.set(ValueLayout.ADDRESS, 0, body);
    vector.set(LONG, Long.BYTES, BODY_BYTES);
    var control = arena.allocate(CONTROL_BYTES, Long.BYTES);
    var header = arena.allocate(HEADER_BYTES, Long.BYTES);
    header.set(ValueLayout.ADDRESS, VECTOR_OFFSET, vector);
    header.set(LONG, VECTORS_OFFSET, 1);
    header.set(ValueLayout.ADDRESS, CONTROL_OFFSET, control);
    header.set(LONG, CONTROL_BYTES_OFFSET, CONTROL_BYTES);
    return header;
  }

  static Received decode(MemorySegment header, long bytes) {
    var fds = new ArrayList<Integer>();
    var controlBytes = header.get(LONG, CONTROL_BYTES_OFFSET);
    if (controlBytes >= CONTROL_BYTES) {
      var control = control(header, controlBytes);
      if (control.get(INT, LEVEL_OFFSET) == SOL_SOCKET
          && control.get(INT, TYPE_OFFSET) == SCM_RIGHTS) {
        var end = Math.min(control.get(LONG, 0), controlBytes);
        for (long index = DATA_OFFSET; index + Integer.BYTES <= end; index += Integer.BYTES) {
          fds.add(control.get(INT, index));
        }
      }
    }
    if (bytes == 0 && fds.isEmpty()) {
      return CLOSED;
    }
    var body = body(header);
    var known = bytes == BODY_BYTES && body.get(INT, 0) == MAGIC;
    var sender = known ? body.get(INT, Integer.BYTES) : -1;
    var lost = (header.get(INT, FLAGS_OFFSET) & MSG_CTRUNC) != 0 || fds.size() != 1;
    return new Received(ReceiveState.MESSAGE, sender, List.copyOf(fds), lost);
  }

  @SuppressWarnings("restricted")
  private static MemorySegment body(MemorySegment header) {
    var vector = header.get(ValueLayout.ADDRESS, VECTOR_OFFSET).reinterpret(VECTOR_BYTES);
    return vector.get(ValueLayout.ADDRESS, 0).reinterpret(BODY_BYTES);
  }

  @SuppressWarnings("restricted")
  private static MemorySegment control(MemorySegment header, long bytes) {
    return header.get(ValueLayout.ADDRESS, CONTROL_OFFSET).reinterpret(bytes);
  }
}
