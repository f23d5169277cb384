package braid.natives.ucx;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.LinkedBlockingQueue;
import org.jspecify.annotations.Nullable;
import org.openucx.jucx.NativeLibs;
import org.openucx.jucx.UcxCallback;
import org.openucx.jucx.UcxUtils;
import org.openucx.jucx.ucp.UcpAmData;
import org.openucx.jucx.ucp.UcpConstants;
import org.openucx.jucx.ucp.UcpContext;
import org.openucx.jucx.ucp.UcpEndpoint;
import org.openucx.jucx.ucp.UcpEndpointParams;
import org.openucx.jucx.ucp.UcpMemory;
import org.openucx.jucx.ucp.UcpParams;
import org.openucx.jucx.ucp.UcpRemoteKey;
import org.openucx.jucx.ucp.UcpRequest;
import org.openucx.jucx.ucp.UcpRequestParams;
import org.openucx.jucx.ucp.UcpWorker;
import org.openucx.jucx.ucp.UcpWorkerParams;
import org.openucx.jucx.ucs.UcsConstants;

/// A process that uses UCX through JUCX. It serves requests of its standard input, and transfers of
/// its peer meanwhile, until the input ends.
///
/// A frame is a count of bytes, then the bytes. A request is a frame with its task and a frame with
/// its arguments. The first frame of the standard output is the reason for which JUCX does not
/// load, empty if it loads. Then each request gets one frame.
final class JucxPeer {
  /// Size of the memory: no multiple of a word or a page.
  static final int BYTES = (3 << 20) + 13;

  private static final int MESSAGE = 0;

  enum Task {
    /// Returns the worker's address.
    ADDRESS,
    /// Returns the address of the memory, and its key.
    MEMORY,
    /// Returns the contents of the memory.
    CONTENTS,
    /// Connects to the worker of an address.
    CONNECT,
    /// Opens the peer's memory, of an address and a key.
    OPEN,
    /// Writes bytes from a first one to a last one, exclusive, to the same place of the peer's
    /// memory.
    PUT,
    /// Reads bytes from a first one to a last one, exclusive, from the same place of the peer's
    /// memory.
    FETCH,
    /// Sends a message.
    SEND,
    /// Waits for the next message and returns it.
    RECEIVE
  }

  private record Request(Task task, ByteBuffer arguments) {}

  /// The default is a constant whose number depends on the version of UCX.
  private final UcpRequestParams hostMemory =
      new UcpRequestParams().setMemoryType(UcsConstants.MEMORY_TYPE.UCS_MEMORY_TYPE_HOST);

  private final UcpContext context;
  private final UcpWorker worker;
  private final ByteBuffer contents = ByteBuffer.allocateDirect(BYTES);
  private final ByteBuffer sent = ByteBuffer.allocateDirect(UcxWorker.MAX_MESSAGE_BYTES);
  private final UcpMemory memory;

  /// Requests that have arrived; empty at the end of the input.
  private final LinkedBlockingQueue<Optional<Request>> requests = new LinkedBlockingQueue<>();

  private final LinkedBlockingQueue<byte[]> messages = new LinkedBlockingQueue<>();
  private @Nullable UcpEndpoint endpoint;
  private @Nullable UcpRemoteKey key;
  private long remote;

  private JucxPeer() {
    context =
        new UcpContext(
            new UcpParams().requestRmaFeature().requestAmFeature().requestWakeupFeature());
    worker = context.newWorker(new UcpWorkerParams());
    worker.setAmRecvHandler(
        MESSAGE, (_, _, data, _) -> received(data), UcpConstants.UCP_AM_FLAG_WHOLE_MSG);
    for (int i = 0; i < BYTES; i++) {
      contents.put(i, initial(i));
    }
    memory = context.registerMemory(contents);
  }

  /// Returns a byte of the memory before any write.
  static byte initial(int index) {
    return (byte) (13 * index + 5);
  }

  public static void main(String[] arguments) throws Exception {
    var output = new DataOutputStream(new BufferedOutputStream(System.out));
    var refusal = "";
    try {
      NativeLibs.load();
    } catch (LinkageError e) {
      refusal = e.toString();
    }
    writeFrame(output, refusal.getBytes(UTF_8));
    if (refusal.isEmpty()) {
      new JucxPeer().serve(output);
    }
  }

  static byte[] readFrame(DataInputStream input) throws IOException {
    var frame = new byte[input.readInt()];
    input.readFully(frame);
    return frame;
  }

  static void writeFrame(DataOutputStream output, byte[] frame) throws IOException {
    output.writeInt(frame.length);
    output.write(frame);
    output.flush();
  }

  private void serve(DataOutputStream output) throws Exception {
    Thread.ofPlatform().daemon().start(this::readRequests);
    for (var next = take(requests); next.isPresent(); next = take(requests)) {
      writeFrame(output, reply(next.get().task(), next.get().arguments()));
    }
    if (key != null) {
      key.close();
    }
    if (endpoint != null) {
      await(endpoint.closeNonBlockingForce());
    }
    memory.close();
    worker.close();
    context.close();
  }

  private void readRequests() {
    var input = new DataInputStream(System.in);
    try {
      while (true) {
        var task = Task.valueOf(new String(readFrame(input), UTF_8));
        requests.add(Optional.of(new Request(task, ByteBuffer.wrap(readFrame(input)))));
        worker.signal();
      }
    } catch (EOFException e) {
      requests.add(Optional.empty());
      worker.signal();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private byte[] reply(Task task, ByteBuffer arguments) throws Exception {
    switch (task) {
      case ADDRESS -> {
        return array(worker.getAddress());
      }
      case MEMORY -> {
        var packed = array(memory.getRemoteKeyBuffer());
        return ByteBuffer.allocate(Long.BYTES + packed.length)
            .putLong(memory.getAddress())
            .put(packed)
            .array();
      }
      case CONTENTS -> {
        return array(contents);
      }
      case CONNECT ->
          endpoint =
              worker.newEndpoint(
                  new UcpEndpointParams()
                      .setUcpAddress(direct(arguments))
                      .setPeerErrorHandlingMode());
      case OPEN -> {
        remote = arguments.getLong();
        key = connected().unpackRemoteKey(direct(arguments));
      }
      case PUT -> {
        var part = part(arguments);
        await(
            connected()
                .putNonBlocking(
                    part,
                    remote + part.position(),
                    Objects.requireNonNull(key),
                    new UcxCallback()));
        await(connected().flushNonBlocking(new UcxCallback()));
      }
      case FETCH -> {
        var part = part(arguments);
        await(
            connected()
                .getNonBlocking(
                    remote + part.position(),
                    Objects.requireNonNull(key),
                    part,
                    new UcxCallback()));
      }
      case SEND -> {
        sent.clear().put(arguments).flip();
        await(
            connected()
                .sendAmNonBlocking(
                    MESSAGE,
                    0,
                    0,
                    UcxUtils.getAddress(sent),
                    sent.remaining(),
                    UcpConstants.UCP_AM_SEND_FLAG_EAGER,
                    new UcxCallback(),
                    hostMemory));
      }
      case RECEIVE -> {
        return take(messages);
      }
    }
    return new byte[0];
  }

  private UcpEndpoint connected() {
    return Objects.requireNonNull(endpoint);
  }

  private ByteBuffer part(ByteBuffer arguments) {
    return contents.duplicate().position(arguments.getInt()).limit(arguments.getInt());
  }

  private static ByteBuffer direct(ByteBuffer rest) {
    return ByteBuffer.allocateDirect(rest.remaining()).put(rest).flip();
  }

  private static byte[] array(ByteBuffer buffer) {
    var copy = new byte[buffer.remaining()];
    buffer.duplicate().get(copy);
    return copy;
  }

  private int received(UcpAmData data) {
    messages.add(array(UcxUtils.getByteBufferView(data.getDataAddress(), data.getLength())));
    return UcsConstants.STATUS.UCS_OK;
  }

  /// Serves transfers until the queue has an element, and returns it. A new request ends the wait.
  private <T> T take(LinkedBlockingQueue<T> queue) throws Exception {
    while (true) {
      var next = queue.poll();
      if (next != null) {
        return next;
      }
      if (worker.progress() == 0) {
        worker.waitForEvents();
      }
    }
  }

  private void await(UcpRequest request) throws Exception {
    worker.progressRequest(request);
    if (request.getStatus() != UcsConstants.STATUS.UCS_OK) {
      throw new IOException("a request of JUCX failed with status " + request.getStatus());
    }
  }
}
