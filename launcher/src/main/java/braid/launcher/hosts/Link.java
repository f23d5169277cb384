package braid.launcher.hosts;

import braid.launcher.wire.Proven;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.ProtocolException;
import java.net.Socket;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;

/// A TLS connection between an agent and the front, both of which have proved the token. The proofs
/// contain the hash of the certificate, so nobody can sit between them with another one.
final class Link implements AutoCloseable {
  /// Longest silence before the proof.
  private static final Duration GREETING = Duration.ofSeconds(10);

  /// Time for a front that many ranks join to accept a further connection of a rank.
  static final Duration PATIENCE = Duration.ofMinutes(1);

  static final Duration RETRY = Duration.ofMillis(100);

  private final JoinKey key;
  private final SSLContext context;
  private final Socket plain;
  final SSLSocket socket;
  private final DataInputStream in;
  private final DataOutputStream out;

  private Link(JoinKey key, SSLContext context, Socket plain, SSLSocket socket) throws IOException {
    this.key = key;
    this.context = context;
    this.plain = plain;
    this.socket = socket;
    in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
    out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
  }

  /// Returns true if the other side is not the front of the key.
  static boolean isForeign(IOException e) {
    return e instanceof ProtocolException || e.getCause() instanceof CertificateException;
  }

  /// Connects to the front. Its certificate is the key's, or the one that its proof contains.
  static Link connect(JoinKey key) throws IOException {
    return connect(key, RunCertificate.accepting(key.certificate()));
  }

  /// Opens a further connection to the front, again if it is too busy to answer. It resumes the TLS
  /// session of this one, and proves the token anew.
  Link another(Duration patience) throws IOException {
    return patiently(patience, () -> connect(key, context));
  }

  /// Opens a link.
  interface Opening {
    Link open() throws IOException;
  }

  /// Opens a link, again while the front is too busy to answer.
  static Link patiently(Duration patience, Opening opening) throws IOException {
    long deadline = System.nanoTime() + patience.toNanos();
    while (true) {
      try {
        return opening.open();
      } catch (IOException e) {
        if (isForeign(e) || System.nanoTime() > deadline) {
          throw e;
        }
        LockSupport.parkNanos(RETRY.toNanos());
      }
    }
  }

  private static Link connect(JoinKey key, SSLContext context) throws IOException {
    var plain = new Socket();
    try {
      int patience = Math.toIntExact(GREETING.toMillis());
      var address = key.address().replaceAll("[\\[\\]]", "");
      plain.connect(new InetSocketAddress(address, key.port()), patience);
      prepare(plain);
      var socket =
          (SSLSocket) context.getSocketFactory().createSocket(plain, address, key.port(), true);
      RunCertificate.handshake(socket);
      var link = new Link(key, context, plain, socket);
      Proven.connect(link.in, link.out, key.token(), peer(socket));
      return link;
    } catch (IOException | RuntimeException e) {
      plain.close();
      throw e;
    }
  }

  /// Accepts a connection of whoever proves the token.
  static Link accept(Socket plain, RunCertificate certificate, JoinKey key) throws IOException {
    prepare(plain);
    var socket =
        (SSLSocket)
            certificate
                .context()
                .getSocketFactory()
                .createSocket(
                    plain, plain.getInetAddress().getHostAddress(), plain.getPort(), true);
    socket.setUseClientMode(false);
    RunCertificate.handshake(socket);
    var link = new Link(key, certificate.context(), plain, socket);
    Proven.accept(link.in, link.out, key.token(), certificate.hash());
    return link;
  }

  private static void prepare(Socket plain) throws IOException {
    plain.setTcpNoDelay(true);
    plain.setKeepAlive(true);
    plain.setSoTimeout(Math.toIntExact(GREETING.toMillis()));
  }

  private static byte[] peer(SSLSocket socket) throws IOException {
    Certificate[] chain = socket.getSession().getPeerCertificates();
    return RunCertificate.hash(chain[0]);
  }

  /// Ends the time limit of the greeting, or sets another.
  void silence(Duration longest) throws IOException {
    socket.setSoTimeout(Math.toIntExact(longest.toMillis()));
  }

  /// Key of its front.
  JoinKey key() {
    return key;
  }

  DataInputStream in() {
    return in;
  }

  void send(LinkMessage message) throws IOException {
    synchronized (out) {
      message.write(out);
      out.flush();
    }
  }

  /// Copies bytes in both directions until one end closes; then closes both.
  void join(Socket local) {
    Thread.ofVirtual().start(() -> copy(in, local));
    try {
      copy(local.getInputStream());
    } catch (IOException e) {
      // One of the ends has closed; the other learns of it below.
    } finally {
      closeBoth(local);
    }
  }

  private void copy(InputStream from, Socket local) {
    try {
      transfer(from, local.getOutputStream());
    } catch (IOException e) {
      // As above.
    } finally {
      closeBoth(local);
    }
  }

  /// Sends a stream to its end.
  void copy(InputStream from) throws IOException {
    transfer(from, out);
  }

  private static void transfer(InputStream from, OutputStream to) throws IOException {
    var chunk = new byte[1 << 16];
    for (int count = from.read(chunk); count >= 0; count = from.read(chunk)) {
      to.write(chunk, 0, count);
      to.flush();
    }
  }

  private void closeBoth(Socket local) {
    try (local) {
      close();
    } catch (IOException e) {
      // Closed by the other direction.
    }
  }

  /// Closes the connection without TLS's farewell, which would wait for an end that is silent.
  @Override
  public void close() {
    try {
      plain.close();
    } catch (IOException e) {
      // The other end has gone.
    }
  }
}
