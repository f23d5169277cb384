package braid.launcher.hosts;

import braid.launcher.wire.Proven;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ProtocolException;
import java.net.Socket;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLSocket;

/// A TLS connection between an agent and the front, both of which have proved the token. The proofs
/// contain the hash of the certificate, so nobody can sit between them with another one. Beside
/// messages it carries [Channel]s.
final class Link implements AutoCloseable {
  /// Longest silence before the proof.
  private static final Duration GREETING = Duration.ofSeconds(10);

  static final Duration RETRY = Duration.ofMillis(100);

  private final JoinKey key;
  private final Socket plain;
  private final DataInputStream in;
  private final DataOutputStream out;
  private final Map<Integer, Channel> channels = new ConcurrentHashMap<>();

  /// Number of the next channel that this side opens: even in the front, odd in an agent.
  private final AtomicInteger next;

  private volatile boolean closed;

  private Link(JoinKey key, Socket plain, SSLSocket socket) throws IOException {
    this.key = key;
    this.plain = plain;
    next = new AtomicInteger(socket.getUseClientMode() ? 1 : 0);
    in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
    out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
  }

  /// Returns true if the other side is not the front of the key.
  static boolean isForeign(IOException e) {
    return e instanceof ProtocolException || e.getCause() instanceof CertificateException;
  }

  /// Connects to the front. Its certificate is the key's, or the one that its proof contains.
  static Link connect(JoinKey key) throws IOException {
    var context = RunCertificate.accepting(key.certificate());
    var plain = new Socket();
    try {
      int patience = Math.toIntExact(GREETING.toMillis());
      var address = key.address().replaceAll("[\\[\\]]", "");
      plain.connect(new InetSocketAddress(address, key.port()), patience);
      prepare(plain);
      var socket =
          (SSLSocket) context.getSocketFactory().createSocket(plain, address, key.port(), true);
      RunCertificate.handshake(socket);
      var link = new Link(key, plain, socket);
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
    var link = new Link(key, plain, socket);
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
    plain.setSoTimeout(Math.toIntExact(longest.toMillis()));
  }

  /// Key of its front.
  JoinKey key() {
    return key;
  }

  /// Reads the next message. Passes those of channels to them; a channel that this side has closed
  /// takes none.
  LinkMessage read() throws IOException {
    while (true) {
      var message = LinkMessage.read(in);
      if (!(message instanceof LinkMessage.OfChannel part)) {
        return message;
      }
      var channel = channels.get(part.channel());
      if (channel != null) {
        channel.receive(part);
      }
    }
  }

  /// Opens a channel; a message tells its number to the other side.
  Channel open() {
    return add(new Channel(this, next.getAndAdd(2)));
  }

  /// Accepts a channel of the other side.
  Channel accept(int number) {
    return add(new Channel(this, number));
  }

  private Channel add(Channel channel) {
    channels.put(channel.number(), channel);
    if (closed) {
      channel.end();
    }
    return channel;
  }

  void forget(Channel channel) {
    channels.remove(channel.number(), channel);
  }

  void send(LinkMessage message) throws IOException {
    synchronized (out) {
      message.write(out);
      out.flush();
    }
  }

  /// Closes the connection without TLS's farewell, which would wait for an end that is silent.
  @Override
  public void close() {
    closed = true;
    try {
      plain.close();
    } catch (IOException e) {
      // The other end has gone.
    }
    channels.values().forEach(Channel::end);
  }
}
