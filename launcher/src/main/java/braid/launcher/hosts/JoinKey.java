package braid.launcher.hosts;

import braid.model.BraidException;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/// Address, token and certificate by which ranks join a front: `ADDRESS:PORT/TOKEN/CERTIFICATE`.
/// The text is a secret, in a file of mode 0600 or in a variable. A key that was made before its
/// front, `ADDRESS:PORT/TOKEN`, names no certificate; then only the proofs of the token, which
/// contain the certificate's hash, show that it is the front's.
///
/// @param certificate SHA-256 of the front's certificate in hexadecimal digits
public record JoinKey(String address, int port, String token, Optional<String> certificate) {
  /// Variable with the text.
  public static final String VARIABLE = "BRAID_JOIN";

  private static final int TOKEN_BYTES = 32;
  private static final Pattern TEXT =
      Pattern.compile(
          "(?<address>[A-Za-z0-9_.-]+|\\[[0-9A-Fa-f:.%a-z]+\\]):(?<port>[0-9]{1,5})"
              + "/(?<token>[A-Za-z0-9_-]{32,128})(/(?<certificate>[0-9a-f]{64}))?");

  /// @param source file or variable with the text, for messages, which do not repeat the text
  public static JoinKey parse(String source, String text) {
    var match = TEXT.matcher(text.strip());
    if (!match.matches() || port(match.group("port")) == 0) {
      throw new BraidException(
          "%s must be ADDRESS:PORT/TOKEN, with a token of 32 to 128 letters and digits, but is not; copy what the front has written, or see the guide's page on several hosts"
              .formatted(source));
    }
    return new JoinKey(
        match.group("address"),
        port(match.group("port")),
        match.group("token"),
        Optional.ofNullable(match.group("certificate")));
  }

  /// Returns the port; 0 if it is none.
  private static int port(String digits) {
    int port = Integer.parseInt(digits);
    return port > 0xffff ? 0 : port;
  }

  static String newToken() {
    var bytes = new byte[TOKEN_BYTES];
    new SecureRandom().nextBytes(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  /// Reads a file that only its owner may read, as ssh does with keys.
  ///
  /// @throws NoSuchFileException if the front has not written it yet
  public static JoinKey read(Path file) throws NoSuchFileException {
    try {
      var modes = Files.getPosixFilePermissions(file);
      if (modes.stream().anyMatch(mode -> !mode.name().startsWith("OWNER_"))) {
        throw new BraidException(
            "%s must be accessible to its owner only but has mode %s; try chmod 600 %s"
                .formatted(file, PosixFilePermissions.toString(modes), file));
      }
      return parse(file.toString(), Files.readString(file));
    } catch (NoSuchFileException e) {
      throw e;
    } catch (IOException e) {
      throw new BraidException(
          "%s must be the file that the front has written but cannot be read (%s); name another by --join"
              .formatted(file, e),
          e);
    }
  }

  /// Writes the file at once as a whole, with mode 0600.
  public void write(Path file) {
    var owner =
        PosixFilePermissions.asFileAttribute(
            Set.of(PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE));
    try {
      var directory = file.toAbsolutePath().getParent();
      var part = Files.createTempFile(directory, ".braid-join", "", owner);
      Files.write(
          part,
          (text() + "\n").getBytes(StandardCharsets.US_ASCII),
          StandardOpenOption.TRUNCATE_EXISTING);
      Files.move(part, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException e) {
      throw new BraidException(
          "%s must be a file to write but cannot be written (%s); name another by --join"
              .formatted(file, e),
          e);
    }
  }

  /// Removes the file if it is still this front's.
  void remove(Path file) {
    try {
      if (Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
          && Files.readString(file).strip().equals(text())) {
        Files.delete(file);
      }
    } catch (IOException e) {
      // Its front has ended, so the file opens nothing.
    }
  }

  /// Returns the address that another host can reach: this host's name if the front listens on all
  /// its addresses.
  static String reachable(InetAddress listening) throws IOException {
    var text =
        listening.isAnyLocalAddress()
            ? InetAddress.getLocalHost().getHostName()
            : listening.getHostAddress();
    return text.contains(":") ? "[" + text + "]" : text;
  }

  /// Returns the secret text.
  public String text() {
    return "%s:%d/%s%s".formatted(address, port, token, certificate.map(c -> "/" + c).orElse(""));
  }

  /// Host and port, without the secret.
  @Override
  public String toString() {
    return address + ":" + port;
  }
}
