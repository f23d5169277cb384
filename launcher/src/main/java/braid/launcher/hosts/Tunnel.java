package braid.launcher.hosts;

import braid.launcher.machine.SocketOwner;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.locks.LockSupport;

/// A port of the loopback interface whose connections lead to the front. Only processes of this
/// user are let through; they prove their token to the front itself.
final class Tunnel implements AutoCloseable {
  private static final long PAUSE_NANOS = 10_000_000;

  private final ServerSocketChannel listener;
  private final Link link;
  private final int start;
  private final LinkMessage.End end;

  /// @param start number of the process's start
  Tunnel(Link link, int start, LinkMessage.End end) throws IOException {
    this.link = link;
    this.start = start;
    this.end = end;
    listener = ServerSocketChannel.open();
    listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    Thread.ofPlatform().daemon().name("braid-tunnel").start(this::accept);
  }

  int port() throws IOException {
    return ((InetSocketAddress) listener.getLocalAddress()).getPort();
  }

  private void accept() {
    while (listener.isOpen()) {
      try {
        var local = listener.accept();
        Thread.ofVirtual().name("braid-tunnel-link").start(() -> serve(local));
      } catch (IOException | OutOfMemoryError e) {
        // Closed, given up before it was accepted, or without resources for now: Java throws
        // OutOfMemoryError if it cannot start more threads.
        LockSupport.parkNanos(PAUSE_NANOS);
      }
    }
  }

  private void serve(SocketChannel local) {
    try (local) {
      if (SocketOwner.of(local, SocketOwner.Sockets.now()).isOwn()) {
        local.socket().setTcpNoDelay(true);
        try (var channel = link.open()) {
          link.send(new LinkMessage.Connect(channel.number(), start, end));
          channel.join(local.socket());
        }
      }
    } catch (IOException e) {
      // The process finds its connection closed, as if the front had ended.
    }
  }

  @Override
  public void close() {
    try {
      listener.close();
    } catch (IOException e) {
      // It accepts nothing any more.
    }
  }
}
