package braid.launcher.machine;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/// The user at the other end of a connection. Linux knows the user of every socket of this machine;
/// of connections from elsewhere only the address is known.
///
/// @param address empty for a Unix socket
/// @param uid number of the user; [#UNKNOWN] for a connection from another machine
public record SocketOwner(String address, int uid) {
  public static final int UNKNOWN = -1;

  private static final int ROOT = 0;
  private static final int UID_FIELD = 7;
  private static final String ESTABLISHED = "01";
  private static final String MAPPED = "0000000000000000FFFF0000";
  private static final List<Path> TABLES =
      List.of(Path.of("/proc/net/tcp"), Path.of("/proc/net/tcp6"));

  /// Sockets of this machine at one moment, as lines of Linux's tables.
  public record Sockets(List<String> lines) {
    public static Sockets now() {
      var lines = new ArrayList<String>();
      for (var table : TABLES) {
        try {
          lines.addAll(Files.readAllLines(table));
        } catch (IOException e) {
          // Without IPv6, or without /proc: the user stays unknown.
        }
      }
      return new Sockets(lines);
    }
  }

  public static SocketOwner of(SocketChannel connection, Sockets sockets) throws IOException {
    if (connection.getLocalAddress() instanceof UnixDomainSocketAddress) {
      return new SocketOwner("", SELF);
    }
    var remote = (InetSocketAddress) connection.getRemoteAddress();
    var name = remote.getAddress().getHostAddress();
    var from = hex(remote);
    var to = hex(connection.getLocalAddress());
    for (var line : sockets.lines) {
      if (line.contains(from) && line.contains(to)) {
        var fields = line.strip().split("\\s+", -1);
        if (isThat(fields[1], from) && isThat(fields[2], to) && fields[3].equals(ESTABLISHED)) {
          return new SocketOwner(name, Integer.parseUnsignedInt(fields[UID_FIELD]));
        }
      }
    }
    return new SocketOwner(name, UNKNOWN);
  }

  /// Returns true of this process's user and of root, who can do more than connect.
  public boolean isOwn() {
    return uid == ROOT || uid == SELF;
  }

  private static final int SELF = self();

  private static int self() {
    try {
      return (int) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    } catch (IOException | UnsupportedOperationException e) {
      return UNKNOWN - 1;
    }
  }

  private static boolean isThat(String field, String hex) {
    return field.equals(hex) || field.equals(MAPPED + hex);
  }

  /// Returns an address as the tables have it: words in the machine's byte order, then the port.
  private static String hex(SocketAddress socket) {
    var address = (InetSocketAddress) socket;
    var bytes = address.getAddress().getAddress();
    var words = ByteBuffer.allocate(bytes.length).order(ByteOrder.nativeOrder());
    for (var word = ByteBuffer.wrap(bytes); word.hasRemaining(); ) {
      words.putInt(word.getInt());
    }
    return HexFormat.of().withUpperCase().formatHex(words.array())
        + ":%04X".formatted(address.getPort());
  }
}
