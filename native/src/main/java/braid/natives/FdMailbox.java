package braid.natives;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/// Receives file descriptors from other processes of this machine and this user. A sender needs no
/// answer: a sent descriptor waits in the kernel, even after the sender has ended. For one thread.
public final class FdMailbox implements AutoCloseable {
  /// Longest sleep between two checks for cancellation.
  private static final int SLICE_MILLISECONDS = 50;

  private final String name;
  private final int listening;
  private final List<Integer> connections = new ArrayList<>();
  private final Map<Integer, Deque<Integer>> arrived = new HashMap<>();
  private int foreignConnections;
  private boolean closed;

  private FdMailbox(String name) {
    this.name = name;
    this.listening = UnixSocket.listenAt(name);
  }

  /// Opens a mailbox. Names are shared by the whole machine, so a name must be unique to the rank
  /// and the exchange.
  public static FdMailbox open(String name) {
    return new FdMailbox(name);
  }

  /// Sends a copy of the descriptor; the caller still owns and closes the original. Returns at
  /// once: the receiving mailbox must be open, but its rank need not be receiving.
  public void send(String to, int sender, int fd) {
    requireOpen();
    if (sender < 0 || fd < 0) {
      throw new IllegalArgumentException(
          "sender and descriptor must not be negative but were " + sender + " and " + fd);
    }
    var socket = UnixSocket.connectTo(to);
    try {
      if (!UnixSocket.isOurs(socket, to)) {
        throw new IllegalStateException(
            "another user listens at '" + to + "'; nothing was sent, use an unguessable name");
      }
      UnixSocket.send(socket, new FdMessage(sender, fd), to);
    } finally {
      LibC.closeDescriptor(socket);
    }
  }

  /// Receives one descriptor from each of these senders. The caller closes them. Descriptors from
  /// other senders are kept for a later call.
  ///
  /// @param check called between slices of at most 50 ms; ends the wait by throwing
  /// @throws IllegalStateException after the timeout, with the missing senders
  public Map<Integer, Integer> receive(Set<Integer> from, Duration timeout, Runnable check) {
    requireOpen();
    var deadline = System.nanoTime() + timeout.toNanos();
    takeAll();
    while (!missing(from).isEmpty()) {
      check.run();
      var left = deadline - System.nanoTime();
      if (left <= 0) {
        throw timeoutError(from, timeout);
      }
      awaitReadable(Math.clamp(left / 1_000_000 + 1, 1, SLICE_MILLISECONDS));
      takeAll();
    }
    var taken = new HashMap<Integer, Integer>();
    for (var sender : from) {
      taken.put(sender, arrivedOf(sender).removeFirst());
    }
    return Map.copyOf(taken);
  }

  /// Closes the mailbox and every descriptor that was not received.
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    connections.forEach(LibC::closeDescriptor);
    connections.clear();
    arrived.values().forEach(fds -> fds.forEach(LibC::closeDescriptor));
    arrived.clear();
    LibC.closeDescriptor(listening);
  }

  /// Closes a descriptor that was received, or that another library created.
  public static void closeFd(int fd) {
    LibC.closeDescriptor(fd);
  }

  private void awaitReadable(int milliseconds) {
    var sockets = new ArrayList<Integer>(connections.size() + 1);
    sockets.add(listening);
    sockets.addAll(connections);
    UnixSocket.awaitAny(sockets, milliseconds);
  }

  private void takeAll() {
    for (var socket = UnixSocket.accept(listening, name);
        socket >= 0;
        socket = UnixSocket.accept(listening, name)) {
      if (UnixSocket.isOurs(socket, name)) {
        connections.add(socket);
      } else {
        foreignConnections++;
        LibC.closeDescriptor(socket);
      }
    }
    for (var socket : List.copyOf(connections)) {
      var received = UnixSocket.receive(socket, name);
      if (received.state() != FdMessage.ReceiveState.NOTHING_YET) {
        connections.removeIf(socket::equals);
        LibC.closeDescriptor(socket);
        keep(received);
      }
    }
  }

  private void keep(FdMessage.Received received) {
    if (received.state() == FdMessage.ReceiveState.CLOSED) {
      return;
    }
    if (received.sender() < 0 || received.lost()) {
      received.fds().forEach(LibC::closeDescriptor);
      throw new IllegalStateException(
          received.sender() < 0
              ? "a message at '" + name + "' was not sent by a mailbox; use a unique name"
              : "the file descriptor of sender "
                  + received.sender()
                  + " at '"
                  + name
                  + "' was lost: this process has reached its limit of open files; raise ulimit -n");
    }
    arrivedOf(received.sender()).addAll(received.fds());
  }

  private Deque<Integer> arrivedOf(int sender) {
    return arrived.computeIfAbsent(sender, _ -> new ArrayDeque<>());
  }

  private Set<Integer> missing(Set<Integer> from) {
    var missing = new TreeSet<Integer>();
    for (var sender : from) {
      if (arrivedOf(sender).isEmpty()) {
        missing.add(sender);
      }
    }
    return missing;
  }

  private IllegalStateException timeoutError(Set<Integer> from, Duration timeout) {
    var others = new TreeMap<Integer, Integer>();
    arrived.forEach(
        (sender, fds) -> {
          if (!fds.isEmpty()) {
            others.put(sender, fds.size());
          }
        });
    return new IllegalStateException(
        "no file descriptor of "
            + missing(from)
            + " arrived at '"
            + name
            + "' within "
            + timeout.toMillis()
            + " ms; arrived from "
            + others.keySet()
            + (foreignConnections == 0 ? "" : ", refused from other users " + foreignConnections)
            + "; check that those ranks still run and send");
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the mailbox '" + name + "' is closed");
    }
  }
}
