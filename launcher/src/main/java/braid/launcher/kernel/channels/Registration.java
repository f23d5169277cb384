package braid.launcher.kernel.channels;

import braid.launcher.machine.SocketOwner;
import braid.model.BraidException;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;

/// The connection by which a kernel tells its ports to the program that started it, instead of
/// reading them from a file: another program cannot take a port in between.
public final class Registration implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final int MAX_ANSWER_BYTES = 64 << 10;

  private final String name;
  private final Duration patience;
  private final long deadline;
  private final SocketChannel socket;
  private boolean acknowledged;

  private Registration(InetSocketAddress service, Duration patience) throws IOException {
    this.patience = patience;
    name = service.getHostString() + ":" + service.getPort();
    deadline = System.nanoTime() + patience.toNanos();
    socket = SocketChannel.open();
    try {
      socket.socket().connect(service, Math.toIntExact(patience.toMillis()));
    } catch (IOException | IllegalArgumentException e) {
      socket.close();
      throw new BraidException(
          "registration must be possible at tcp://%s but nothing accepts connections there (%s); start the kernel from Jupyter"
              .formatted(name, e.getMessage()),
          e);
    }
  }

  public static Registration connect(InetSocketAddress service) throws IOException {
    return connect(service, PATIENCE);
  }

  static Registration connect(InetSocketAddress service, Duration patience) throws IOException {
    return new Registration(service, patience);
  }

  /// Returns this machine's address that the program can reach, as it reached the program.
  public String ip() throws IOException {
    return ((InetSocketAddress) socket.getLocalAddress()).getAddress().getHostAddress();
  }

  /// Sends the ports, waits for the acknowledgement, and ends the connection.
  ///
  /// @throws BraidException if none comes in time
  public void announce(
      String kernelId, KernelConnectionProperties connection, Map<Channel, Integer> ports)
      throws IOException {
    var codec = MessageCodec.of(connection);
    var content = new JsonObject();
    content.addProperty("kernel_id", kernelId);
    for (var port : ports.entrySet()) {
      var channel = port.getKey() == Channel.HEARTBEAT ? "hb" : port.getKey().name();
      content.addProperty(channel.toLowerCase(Locale.ROOT) + "_port", port.getValue().toString());
    }
    try (var selector = Selector.open()) {
      socket.configureBlocking(false);
      var key = socket.register(selector, SelectionKey.OP_READ);
      var owner = new SocketOwner("", SocketOwner.UNKNOWN);
      var peer =
          new Peer(
              Channel.REGISTRATION,
              owner,
              socket,
              key,
              new byte[0],
              Optional.empty(),
              new Answers(codec, Peer.encode(codec.encode(content))));
      exchange(selector, peer);
    } catch (IOException e) {
      throw new BraidException(
          "registration at tcp://%s must be acknowledged within %d s but was not: %s; start the kernel again"
              .formatted(name, patience.toSeconds(), e.getMessage()),
          e);
    } finally {
      socket.close();
    }
  }

  private void exchange(Selector selector, Peer peer) throws IOException {
    var buffer = ByteBuffer.allocate(MAX_ANSWER_BYTES);
    while (!acknowledged) {
      long leftMillis = (deadline - System.nanoTime()) / 1_000_000;
      if (leftMillis <= 0) {
        throw new IOException("no answer came");
      }
      boolean sent = peer.flush();
      peer.key.interestOps(SelectionKey.OP_READ | (sent ? 0 : SelectionKey.OP_WRITE));
      selector.select(_ -> {}, leftMillis);
      if (socket.read(buffer.clear()) < 0) {
        throw new IOException("the connection ended");
      }
      peer.receive(buffer.flip());
    }
  }

  private final class Answers implements Peer.Sink {
    private final MessageCodec codec;
    private final ByteBuffer request;

    Answers(MessageCodec codec, ByteBuffer request) {
      this.codec = codec;
      this.request = request;
    }

    @Override
    public void ready(Peer peer) {
      peer.send(request);
    }

    @Override
    public void message(Peer peer, List<byte[]> frames) throws IOException {
      if (!codec.isSignedContent(frames)) {
        throw new IOException("the answer is not signed with this kernel's key");
      }
      acknowledged = true;
    }

    @Override
    public int limit(Peer peer) {
      return MAX_ANSWER_BYTES;
    }

    @Override
    public MessageCodec.Skim tooLarge(Peer peer, List<byte[]> frames, long bytes)
        throws IOException {
      throw new IOException("the answer has more than %d bytes".formatted(MAX_ANSWER_BYTES));
    }

    @Override
    public void skimmed(Peer peer, MessageCodec.Skim message, long bytes) {
      throw new IllegalStateException("no message is skimmed");
    }
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
