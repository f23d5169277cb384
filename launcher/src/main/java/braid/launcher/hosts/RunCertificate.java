package braid.launcher.hosts;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigInteger;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.HexFormat;
import java.util.Optional;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

/// Certificate of one front, made for its run and signed by itself. Ranks know its hash, or find by
/// the proofs of the token that it is the front's; no authority is asked.
///
/// The JDK has no public class that makes certificates, so its few fields are written here in DER.
final class RunCertificate {
  /// Hash of a certificate, as proofs and join keys contain it.
  private static final String HASH = "SHA-256";

  private static final char[] NO_PASSWORD = {};
  private static final Duration EARLIER = Duration.ofDays(1);
  private static final Duration LATER = Duration.ofDays(3650);
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyyMMddHHmmss'Z'").withZone(ZoneOffset.UTC);

  // Tags of DER.
  private static final int INTEGER = 0x02;
  private static final int BIT_STRING = 0x03;
  private static final int UTF8_STRING = 0x0c;
  private static final int GENERALIZED_TIME = 0x18;
  private static final int SEQUENCE = 0x30;
  private static final int SET = 0x31;
  private static final int LONG_LENGTH = 0x80;

  /// ecdsa-with-SHA256, 1.2.840.10045.4.3.2.
  private static final byte[] ECDSA_SHA256 = HexFormat.of().parseHex("06082a8648ce3d040302");

  /// commonName, 2.5.4.3.
  private static final byte[] COMMON_NAME = HexFormat.of().parseHex("0603550403");

  private final Certificate certificate;
  private final SSLContext context;

  private RunCertificate(Certificate certificate, SSLContext context) {
    this.certificate = certificate;
    this.context = context;
  }

  static RunCertificate create() {
    // An agent opens one link, and resumes no session.
    System.setProperty("jdk.tls.server.newSessionTicketCount", "0");
    try {
      var generator = KeyPairGenerator.getInstance("EC");
      generator.initialize(new ECGenParameterSpec("secp256r1"));
      var pair = generator.generateKeyPair();
      var now = Instant.now();
      var name = der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, text("braid"))));
      var algorithm = der(SEQUENCE, ECDSA_SHA256);
      var content =
          der(
              SEQUENCE,
              der(INTEGER, new BigInteger(Long.SIZE, new SecureRandom()).toByteArray()),
              algorithm,
              name,
              der(SEQUENCE, time(now.minus(EARLIER)), time(now.plus(LATER))),
              name,
              pair.getPublic().getEncoded());
      var signature = Signature.getInstance("SHA256withECDSA");
      signature.initSign(pair.getPrivate());
      signature.update(content);
      // A bit string begins with its number of unused bits.
      var bits = der(BIT_STRING, new byte[] {0}, signature.sign());
      var encoded = der(SEQUENCE, content, algorithm, bits);
      var certificate =
          CertificateFactory.getInstance("X.509")
              .generateCertificate(new ByteArrayInputStream(encoded));
      // In memory only. PKCS12 would encrypt and decrypt the key with 10,000 hashes each.
      var keys = KeyStore.getInstance("JKS");
      keys.load(null, null);
      keys.setKeyEntry("braid", pair.getPrivate(), NO_PASSWORD, new Certificate[] {certificate});
      var managers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      managers.init(keys, NO_PASSWORD);
      var context = SSLContext.getInstance("TLSv1.3");
      context.init(managers.getKeyManagers(), null, null);
      return new RunCertificate(certificate, context);
    } catch (GeneralSecurityException | IOException e) {
      throw new IllegalStateException("this JDK cannot make a certificate: " + e, e);
    }
  }

  private static byte[] text(String text) {
    return der(UTF8_STRING, text.getBytes(StandardCharsets.UTF_8));
  }

  private static byte[] time(Instant instant) {
    return der(GENERALIZED_TIME, TIME.format(instant).getBytes(StandardCharsets.US_ASCII));
  }

  /// Encodes a value: tag, length, content.
  private static byte[] der(int tag, byte[]... parts) {
    var content = new ByteArrayOutputStream();
    for (var part : parts) {
      content.writeBytes(part);
    }
    var encoded = new ByteArrayOutputStream();
    encoded.write(tag);
    int length = content.size();
    if (length < LONG_LENGTH) {
      encoded.write(length);
    } else {
      var digits = BigInteger.valueOf(length).toByteArray();
      int skipped = digits[0] == 0 ? 1 : 0;
      encoded.write(LONG_LENGTH + digits.length - skipped);
      encoded.write(digits, skipped, digits.length - skipped);
    }
    encoded.writeBytes(content.toByteArray());
    return encoded.toByteArray();
  }

  Certificate certificate() {
    return certificate;
  }

  byte[] hash() {
    return hash(certificate);
  }

  static byte[] hash(Certificate certificate) {
    try {
      return MessageDigest.getInstance(HASH).digest(certificate.getEncoded());
    } catch (CertificateException | NoSuchAlgorithmException e) {
      throw new IllegalStateException("a certificate without encoding", e);
    }
  }

  /// Returns the front's side of TLS.
  SSLContext context() {
    return context;
  }

  /// Returns a rank's side of TLS, which accepts the certificate with this hash, or any certificate
  /// if the hash is not known yet.
  static SSLContext accepting(Optional<String> hash) {
    try {
      var context = SSLContext.getInstance("TLSv1.3");
      context.init(null, new TrustManager[] {new Pinned(hash)}, null);
      return context;
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this JDK has no TLS 1.3: " + e, e);
    }
  }

  /// Shakes hands by one curve: with the JDK's defaults a rank makes keys of two.
  static void handshake(SSLSocket socket) throws IOException {
    var parameters = socket.getSSLParameters();
    parameters.setNamedGroups(new String[] {"x25519"});
    socket.setSSLParameters(parameters);
    socket.startHandshake();
  }

  /// Accepts one certificate, whatever names it contains.
  private static final class Pinned extends X509ExtendedTrustManager {
    private final Optional<String> hash;

    private Pinned(Optional<String> hash) {
      this.hash = hash;
    }

    private void check(X509Certificate[] chain) throws CertificateException {
      var found = HexFormat.of().formatHex(hash(chain[0]));
      if (hash.isPresent() && !hash.get().equals(found)) {
        throw new CertificateException(
            "its certificate is not the one of the join key, which may be of an earlier run");
      }
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type)
        throws CertificateException {
      check(chain);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket)
        throws CertificateException {
      check(chain);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine)
        throws CertificateException {
      check(chain);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type)
        throws CertificateException {
      throw new CertificateException("a rank accepts no clients");
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket)
        throws CertificateException {
      throw new CertificateException("a rank accepts no clients");
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine)
        throws CertificateException {
      throw new CertificateException("a rank accepts no clients");
    }

    @Override
    public X509Certificate[] getAcceptedIssuers() {
      return new X509Certificate[0];
    }
  }
}
