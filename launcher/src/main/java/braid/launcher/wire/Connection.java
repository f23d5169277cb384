package braid.launcher.wire;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/// A socket with buffered streams. TCP_NODELAY and buffered writes are both needed: if one of them
/// is missing, every cell waits for a delayed acknowledgement.
public final class Connection implements AutoCloseable {
  private static final int BUFFER_BYTES = 1 << 16;

  /// The proofs of a rank's connection are not valid elsewhere.
  private static final byte[] BOUND = "rank".getBytes(StandardCharsets.US_ASCII);

  private final Socket socket;
  private final DataInputStream in;
  private final DataOutputStream out;

  public Connection(Socket socket) throws IOException {
    this.socket = socket;
    socket.setTcpNoDelay(true);
    in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), BUFFER_BYTES));
    out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream(), BUFFER_BYTES));
  }

  public DataInputStream in() {
    return in;
  }

  /// Sends a whole message; thread-safe.
  public synchronized void send(ToRank message) throws IOException {
    message.write(out);
    out.flush();
  }

  /// Sends a whole message; thread-safe. The message is encoded before its first byte is sent, so
  /// the connection stays usable if a message cannot be encoded.
  ///
  /// @throws braid.model.BraidException if the message is too large
  public void send(FromRank message) throws IOException {
    var bytes = new ByteArrayOutputStream();
    message.write(new DataOutputStream(bytes));
    synchronized (this) {
      bytes.writeTo(out);
      out.flush();
    }
  }

  /// Proves the token to the front, and sends the rank's hello.
  public synchronized void greet(String token, Hello hello) throws IOException {
    Proven.connect(in, out, token, BOUND);
    Wire.write(out, hello, Hello.class);
    out.flush();
  }

  /// Receives a rank's proof of the token, after the front's own, and its hello.
  public synchronized Hello receiveHello(String token) throws IOException {
    Proven.accept(in, out, token, BOUND);
    return Wire.read(in, Hello.class);
  }

  public void readTimeoutMillis(int millis) throws IOException {
    socket.setSoTimeout(millis);
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
