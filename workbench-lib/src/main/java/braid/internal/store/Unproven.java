package braid.internal.store;

import java.io.IOException;
import java.net.Socket;
import java.util.LinkedHashSet;
import java.util.Set;

/// Connections that have not shown the session's token. They are few: every local user can open
/// some, and each takes a file descriptor that the process needs to save results. The oldest is
/// closed for a new one, since a rank shows its token at once.
public final class Unproven {
  private static final int MOST = 64;

  private final Set<Socket> connections = new LinkedHashSet<>();

  public synchronized void add(Socket connection) {
    if (connections.size() == MOST) {
      var oldest = connections.iterator().next();
      connections.remove(oldest);
      try {
        oldest.close();
      } catch (IOException e) {
        // Nothing was sent on it.
      }
    }
    connections.add(connection);
  }

  /// Forgets a connection that has shown the token, or was closed.
  public synchronized void remove(Socket connection) {
    connections.remove(connection);
  }
}
