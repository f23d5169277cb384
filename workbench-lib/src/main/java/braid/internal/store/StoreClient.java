package braid.internal.store;

import braid.internal.rank.BlockedWait;
import braid.model.BraidException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.BufferUnderflowException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/// A rank's connection to a [StoreServer]. Several threads of a rank may wait in meetings at once;
/// a reader thread hands each its reply.
public final class StoreClient implements Store {
  private static final Duration CONNECT = Duration.ofSeconds(10);

  private final Socket socket;
  private final Frames frames;
  private final String address;
  private final AtomicInteger ids = new AtomicInteger();
  private final Map<Integer, CompletableFuture<Reply>> pending = new ConcurrentHashMap<>();
  private volatile boolean closed;

  private StoreClient(Socket socket, Frames frames, String address) {
    this.socket = socket;
    this.frames = frames;
    this.address = address;
  }

  /// Connects as the rank and waits for the store's answer.
  public static StoreClient connect(String host, int port, String token, int rank) {
    var address = host + ":" + port;
    var socket = new Socket();
    try {
      socket.connect(new InetSocketAddress(host, port), Math.toIntExact(CONNECT.toMillis()));
      socket.setSoTimeout(Math.toIntExact(CONNECT.toMillis()));
      var frames = new Frames(socket);
      var refusal = frames.greet(rank, token);
      if (!refusal.isEmpty()) {
        throw new BraidException(
            "the store at %s refused rank %d: %s".formatted(address, rank, refusal));
      }
      socket.setSoTimeout(0);
      var client = new StoreClient(socket, frames, address);
      Thread.ofPlatform().daemon().name("braid-store-client").start(client::read);
      return client;
    } catch (IOException | RuntimeException e) {
      try {
        socket.close();
      } catch (IOException unclosed) {
        e.addSuppressed(unclosed);
      }
      if (e instanceof BraidException refused) {
        throw refused;
      }
      throw new BraidException(
          "rank %d cannot reach the store at %s (%s); check MASTER_ADDR and MASTER_PORT"
              .formatted(rank, address, e.getMessage()),
          e);
    }
  }

  @Override
  public Ticket join(Meeting meeting, byte[] value) {
    Meeting.checkValue(meeting.label(), value);
    int id = ids.incrementAndGet();
    var reply = new CompletableFuture<Reply>();
    pending.put(id, reply);
    send(
        'j',
        id,
        out -> {
          Frames.put(out, meeting);
          Frames.put(out, value);
        });
    return new Ticket(
        reply,
        () -> send('g', id, out -> {}),
        departed -> send('d', id, out -> Frames.put(out, departed)));
  }

  @Override
  public CompletableFuture<BlockedWait.Answer> report(BlockedWait wait) {
    int id = ids.incrementAndGet();
    var reply = new CompletableFuture<Reply>();
    pending.put(id, reply);
    send('w', id, out -> Frames.put(out, wait));
    return reply.thenApply(
        received ->
            received instanceof Reply.Reported(var answer)
                ? answer
                : new BlockedWait.Answer(0, false, ""));
  }

  private void send(char request, int id, Frames.Writer rest) {
    try {
      if (closed) {
        throw new IOException("the connection is closed");
      }
      frames.send(
          out -> {
            out.writeByte(request);
            out.writeInt(id);
            rest.write(out);
          });
    } catch (IOException e) {
      lost(e.toString());
    }
  }

  private void read() {
    try {
      for (var frame = frames.receive(Frames.MAX_FRAME_BYTES);
          frame != null;
          frame = frames.receive(Frames.MAX_FRAME_BYTES)) {
        var waiting = pending.remove(frame.getInt());
        var reply = Frames.reply(frame);
        if (waiting != null) {
          waiting.complete(reply);
        }
      }
      lost("it closed the connection");
    } catch (IOException | BufferUnderflowException e) {
      lost(e.toString());
    }
  }

  /// Fails all pending replies, which cannot arrive any more.
  private void lost(String reason) {
    closed = true;
    for (var id : List.copyOf(pending.keySet())) {
      var waiting = pending.remove(id);
      if (waiting != null) {
        waiting.complete(new Reply.Aborted("lost the store at %s: %s".formatted(address, reason)));
      }
    }
  }

  @Override
  public void close() {
    closed = true;
    try {
      socket.close();
    } catch (IOException e) {
      throw new BraidException("cannot close the connection to the store at " + address, e);
    }
  }
}
