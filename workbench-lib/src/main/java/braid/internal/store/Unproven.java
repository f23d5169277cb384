package braid.internal.store;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/// Connections that have not proved the session's token. They are few: every stranger can open
/// some, and each takes a file descriptor that the process needs to save results. The oldest one of
/// the address that has most is closed for a new one, since a rank proves the token at once and
/// must not lose its place to a flood from elsewhere.
public final class Unproven {
  /// Connections of strangers, beside those of ranks.
  private static final int STRANGERS = 64;

  private final int most;

  /// Connections in the order of their arrival, with its time (`System.nanoTime`).
  private final Map<Socket, Long> connections = new LinkedHashMap<>();

  /// @param expected connections of ranks that may arrive at once
  public Unproven(int expected) {
    most = STRANGERS + expected;
  }

  public synchronized void add(Socket connection) {
    if (connections.size() == most) {
      var oldest = oldestOfMost();
      connections.remove(oldest);
      close(oldest);
    }
    connections.put(connection, System.nanoTime());
  }

  /// Closes connections that have not proved the token within this time, however slowly they send.
  public synchronized void closeOlderThan(Duration limit) {
    long now = System.nanoTime();
    connections
        .entrySet()
        .removeIf(
            each -> {
              boolean old = now - each.getValue() > limit.toNanos();
              if (old) {
                close(each.getKey());
              }
              return old;
            });
  }

  private static void close(Socket connection) {
    try {
      connection.close();
    } catch (IOException e) {
      // Nothing was sent on it.
    }
  }

  private Socket oldestOfMost() {
    var counts = new HashMap<InetAddress, Integer>();
    connections.keySet().forEach(each -> counts.merge(each.getInetAddress(), 1, Integer::sum));
    int most = Collections.max(counts.values());
    return connections.keySet().stream()
        .filter(each -> counts.getOrDefault(each.getInetAddress(), 0) == most)
        .findFirst()
        .orElseThrow();
  }

  /// Forgets a connection that has proved the token, or was closed.
  public synchronized void remove(Socket connection) {
    connections.remove(connection);
  }
}
