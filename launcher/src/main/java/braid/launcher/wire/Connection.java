package braid.launcher.wire;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;

/// A socket with buffered streams. TCP_NODELAY and buffered writes are both needed: if one of them
/// is missing, every cell waits for a delayed acknowledgement.
public final class Connection implements AutoCloseable {
  private static final int BUFFER_BYTES = 1 << 16;

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

  public synchronized void send(Hello hello) throws IOException {
    hello.write(out);
    out.flush();
  }

  public void readTimeoutMillis(int millis) throws IOException {
    socket.setSoTimeout(millis);
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
