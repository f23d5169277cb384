package braid.natives;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;
import java.util.List;

/// Linux socket calls that pass file descriptors, which Java's own sockets cannot do. All sockets
/// are local, non-blocking and closed on exec.
final class UnixSocket {
  /// Maximum number of connections that wait for one mailbox: far more than one machine has ranks.
  static final int BACKLOG = 1024;

  private static final int EAGAIN = 11;
  private static final int EINTR = 4;
  private static final int ECONNREFUSED = 111;

  private static final short AF_UNIX = 1;
  private static final int SOCK_SEQPACKET = 5;
  private static final int SOCK_NONBLOCK = 0x800;
  private static final int SOCK_CLOEXEC = 0x80000;
  private static final int SOL_SOCKET = 1;
  private static final int SO_PEERCRED = 17;
  private static final short POLLIN = 1;

  private static final int PATH_OFFSET = 2;
  private static final int PATH_BYTES = 108;
  private static final int CREDENTIALS_BYTES = 12;
  private static final int CREDENTIALS_USER_OFFSET = 4;
  private static final int POLL_BYTES = 8;
  private static final int POLL_EVENTS_OFFSET = 4;

  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
  private static final StructLayout ERRNO_STATE = Linker.Option.captureStateLayout();
  private static final VarHandle ERRNO =
      ERRNO_STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));

  private static final MethodHandle SOCKET =
      call("socket", FunctionDescriptor.of(INT, INT, INT, INT));
  private static final MethodHandle BIND =
      call("bind", FunctionDescriptor.of(INT, INT, LibC.POINTER, INT));
  private static final MethodHandle LISTEN = call("listen", FunctionDescriptor.of(INT, INT, INT));
  private static final MethodHandle CONNECT =
      call("connect", FunctionDescriptor.of(INT, INT, LibC.POINTER, INT));
  private static final MethodHandle ACCEPT =
      call("accept4", FunctionDescriptor.of(INT, INT, LibC.POINTER, LibC.POINTER, INT));
  private static final MethodHandle SEND =
      call("sendmsg", FunctionDescriptor.of(LONG, INT, LibC.POINTER, INT));
  private static final MethodHandle RECEIVE =
      call("recvmsg", FunctionDescriptor.of(LONG, INT, LibC.POINTER, INT));
  private static final MethodHandle POLL =
      call("poll", FunctionDescriptor.of(INT, LibC.POINTER, LONG, INT));
  private static final MethodHandle OPTION =
      call("getsockopt", FunctionDescriptor.of(INT, INT, INT, INT, LibC.POINTER, LibC.POINTER));
  private static final MethodHandle USER = LibC.function("geteuid", FunctionDescriptor.of(INT));
  private static final MethodHandle TEXT =
      LibC.function("strerror", FunctionDescriptor.of(LibC.POINTER, INT));

  private UnixSocket() {}

  /// Listens at an abstract address. It has no file and disappears when the socket is closed.
  static int listenAt(String name) {
    try (var arena = Arena.ofConfined()) {
      var state = arena.allocate(ERRNO_STATE);
      var address = address(arena, name);
      var socket = open(state);
      try {
        check(
            (int) BIND.invokeExact(state, socket, address, (int) address.byteSize()),
            state,
            "bind to",
            name);
        check((int) LISTEN.invokeExact(state, socket, BACKLOG), state, "listen at", name);
        return socket;
      } catch (Throwable e) {
        LibC.closeDescriptor(socket);
        throw e;
      }
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  /// Connects or fails immediately, without blocking. The listener need not be in `accept`.
  static int connectTo(String name) {
    try (var arena = Arena.ofConfined()) {
      var state = arena.allocate(ERRNO_STATE);
      var address = address(arena, name);
      var socket = open(state);
      try {
        int result;
        do {
          result = (int) CONNECT.invokeExact(state, socket, address, (int) address.byteSize());
        } while (result < 0 && errno(state) == EINTR);
        if (result < 0) {
          throw failure("connect to", name, errno(state), remedyOfConnect(errno(state)));
        }
        return socket;
      } catch (Throwable e) {
        LibC.closeDescriptor(socket);
        throw e;
      }
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  private static String remedyOfConnect(int errno) {
    return switch (errno) {
      case ECONNREFUSED -> "; open every rank's mailbox before the first one sends";
      case EAGAIN -> "; " + BACKLOG + " senders already wait there; check that its rank receives";
      default -> "";
    };
  }

  /// Accepts a pending connection of the listening socket. Returns -1 if none is pending.
  static int accept(int listening, String name) {
    try (var arena = Arena.ofConfined()) {
      var state = arena.allocate(ERRNO_STATE);
      while (true) {
        var socket =
            (int)
                ACCEPT.invokeExact(
                    state,
                    listening,
                    MemorySegment.NULL,
                    MemorySegment.NULL,
                    SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket >= 0) {
          return socket;
        }
        if (errno(state) == EAGAIN) {
          return -1;
        }
        if (errno(state) != EINTR) {
          throw failure("accept at", name, errno(state), "");
        }
      }
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  static void send(int socket, FdMessage message, String name) {
    try (var arena = Arena.ofConfined()) {
      var state = arena.allocate(ERRNO_STATE);
      var header = message.encode(arena);
      long sent;
      do {
        sent = (long) SEND.invokeExact(state, socket, header, FdMessage.SEND_FLAGS);
      } while (sent < 0 && errno(state) == EINTR);
      if (sent < 0) {
        throw failure("send a file descriptor to", name, errno(state), "");
      }
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  /// Returns the next message of a connection, or `NOTHING_YET` or `CLOSED`.
  static FdMessage.Received receive(int socket, String name) {
    try (var arena = Arena.ofConfined()) {
      var state = arena.allocate(ERRNO_STATE);
      var header = FdMessage.emptyHeader(arena);
      while (true) {
        var bytes = (long) RECEIVE.invokeExact(state, socket, header, FdMessage.RECEIVE_FLAGS);
        if (bytes >= 0) {
          return FdMessage.decode(header, bytes);
        }
        if (errno(state) == EAGAIN) {
          return FdMessage.NOTHING_YET;
        }
        if (errno(state) != EINTR) {
          throw failure("receive at", name, errno(state), "");
        }
      }
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  /// Sleeps until one of the sockets is readable, for at most `milliseconds`. A signal to this
  /// process ends the sleep too.
  static void awaitAny(List<Integer> sockets, int milliseconds) {
    try (var arena = Arena.ofConfined()) {
      var state = arena.allocate(ERRNO_STATE);
      var entries = arena.allocate((long) POLL_BYTES * sockets.size(), Integer.BYTES);
      for (int i = 0; i < sockets.size(); i++) {
        entries.set(INT, (long) i * POLL_BYTES, sockets.get(i));
        entries.set(ValueLayout.JAVA_SHORT, (long) i * POLL_BYTES + POLL_EVENTS_OFFSET, POLLIN);
      }
      var result = (int) POLL.invokeExact(state, entries, (long) sockets.size(), milliseconds);
      if (result < 0 && errno(state) != EINTR) {
        throw failure("poll", sockets.size() + " sockets", errno(state), "");
      }
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  /// Returns true if the process at the other end runs as the same user as this process. Abstract
  /// addresses have no permissions: any user may listen at one or connect to it.
  static boolean isOurs(int socket, String name) {
    try (var arena = Arena.ofConfined()) {
      var state = arena.allocate(ERRNO_STATE);
      var credentials = arena.allocate(CREDENTIALS_BYTES, Integer.BYTES);
      var length = arena.allocateFrom(INT, CREDENTIALS_BYTES);
      check(
          (int) OPTION.invokeExact(state, socket, SOL_SOCKET, SO_PEERCRED, credentials, length),
          state,
          "ask for the user at",
          name);
      return credentials.get(INT, CREDENTIALS_USER_OFFSET) == (int) USER.invokeExact();
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  private static int open(MemorySegment state) throws Throwable {
    return check(
        (int)
            SOCKET.invokeExact(
                state, (int) AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
        state,
        "open a socket for",
        "file descriptors");
  }

  private static MemorySegment address(Arena arena, String name) {
    var bytes = name.getBytes(StandardCharsets.UTF_8);
    if (bytes.length == 0 || bytes.length >= PATH_BYTES) {
      throw new IllegalArgumentException(
          "a mailbox's name must have 1 to "
              + (PATH_BYTES - 1)
              + " bytes but '"
              + name
              + "' has "
              + bytes.length);
    }
    // A leading zero byte makes the name abstract; the address length, not a zero byte, ends it.
    var address = arena.allocate(PATH_OFFSET + 1 + bytes.length, Short.BYTES);
    address.set(ValueLayout.JAVA_SHORT, 0, AF_UNIX);
    MemorySegment.copy(bytes, 0, address, ValueLayout.JAVA_BYTE, PATH_OFFSET + 1, bytes.length);
    return address;
  }

  private static int check(int result, MemorySegment state, String action, String name) {
    if (result < 0) {
      throw failure(action, name, errno(state), "");
    }
    return result;
  }

  private static IllegalStateException failure(
      String action, String name, int errno, String remedy) {
    return new IllegalStateException(
        "cannot " + action + " '" + name + "': " + text(errno) + " (errno " + errno + ")" + remedy);
  }

  @SuppressWarnings("restricted")
  private static String text(int errno) {
    try {
      var text = (MemorySegment) TEXT.invokeExact(errno);
      return text.reinterpret(Long.MAX_VALUE).getString(0);
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  private static int errno(MemorySegment state) {
    return (int) ERRNO.get(state, 0L);
  }

  private static MethodHandle call(String name, FunctionDescriptor descriptor) {
    return LibC.function(name, descriptor, Linker.Option.captureCallState("errno"));
  }
}
