package braid.launcher.kernel.channels;

import braid.model.BraidException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;
import org.jspecify.annotations.Nullable;

/// The addresses of a connection file, bound to one listening socket per channel: TCP ports, or
/// Unix sockets that only the kernel's user can open.
final class Listeners {
  private static final int FILE_TYPE = 0170000;
  private static final int SOCKET = 0140000;
  private static final int BACKLOG = 128;

  private final Map<Channel, ServerSocketChannel> servers = new EnumMap<>(Channel.class);
  private final List<Path> files = new ArrayList<>();
  private final Selector selector;

  Listeners(KernelConnectionProperties connection, Selector selector) throws IOException {
    this.selector = selector;
    try {
      listen(Channel.HEARTBEAT, connection, connection.getHbPort());
      listen(Channel.SHELL, connection, connection.getShellPort());
      listen(Channel.CONTROL, connection, connection.getControlPort());
      listen(Channel.STDIN, connection, connection.getStdinPort());
      listen(Channel.IOPUB, connection, connection.getIopubPort());
    } catch (IOException | BraidException e) {
      close();
      throw e;
    }
  }

  private void listen(Channel channel, KernelConnectionProperties connection, int port)
      throws IOException {
    boolean local = connection.getTransport().equals("ipc");
    var ip = connection.getIp();
    var name = local ? ip + "-" + port : ip + ":" + port;
    var server =
        local ? ServerSocketChannel.open(StandardProtocolFamily.UNIX) : ServerSocketChannel.open();
    servers.put(channel, server);
    try {
      if (local && isSocket(Path.of(name))) {
        Files.delete(Path.of(name)); // of a kernel that was killed
      }
      SocketAddress address =
          local
              ? UnixDomainSocketAddress.of(name)
              : ip.equals("*") ? new InetSocketAddress(port) : new InetSocketAddress(ip, port);
      server.bind(address, BACKLOG);
    } catch (IOException | IllegalArgumentException e) {
      throw new BraidException(
          "%s://%s must be free but is taken or not this machine's (%s); start the kernel again"
              .formatted(connection.getTransport(), name, e.getMessage()),
          e);
    }
    if (local) {
      files.add(Path.of(name));
      Files.setPosixFilePermissions(Path.of(name), PosixFilePermissions.fromString("rw-------"));
    }
    server.configureBlocking(false);
    server.register(selector, SelectionKey.OP_ACCEPT, channel);
  }

  private static boolean isSocket(Path file) throws IOException {
    return Files.exists(file, LinkOption.NOFOLLOW_LINKS)
        && ((int) Files.getAttribute(file, "unix:mode", LinkOption.NOFOLLOW_LINKS) & FILE_TYPE)
            == SOCKET;
  }

  Map<Channel, Integer> ports() throws IOException {
    var ports = new EnumMap<Channel, Integer>(Channel.class);
    for (var server : servers.entrySet()) {
      if (server.getValue().getLocalAddress() instanceof InetSocketAddress address) {
        ports.put(server.getKey(), address.getPort());
      }
    }
    return ports;
  }

  /// Returns the next waiting connection, null if there is none.
  @Nullable SocketChannel accept(Channel channel) throws IOException {
    var server = servers.get(channel);
    return server == null ? null : server.accept();
  }

  /// Selects waiting connections from now on, or no longer.
  void watch(boolean accepts) {
    for (var server : servers.values()) {
      server.keyFor(selector).interestOps(accepts ? SelectionKey.OP_ACCEPT : 0);
    }
  }

  void close() throws IOException {
    for (var server : servers.values()) {
      server.close();
    }
    for (var file : files) {
      Files.deleteIfExists(file);
    }
  }
}
