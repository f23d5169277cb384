package braid.launcher.kernel.channels;

import braid.model.BraidException;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;

/// The file with which a kernel is started: a connection file, with the addresses of its sockets,
/// or a registration file, with the address of a program that expects them.
///
/// @param sockets addresses; ports are 0 and the address is empty in a registration file
/// @param keys of CURVE, if the sockets are encrypted
/// @param registration where the kernel tells its ports, in a registration file
public record ConnectionFile(
    KernelConnectionProperties sockets,
    Optional<CurveKeys> keys,
    Optional<InetSocketAddress> registration,
    String kernelId) {
  private static final int MAX_PORT = 65535;

  /// @throws BraidException if the file is unusable
  public static ConnectionFile read(Path file) throws IOException {
    if (!Files.isRegularFile(file)) {
      throw new BraidException(
          "connection file must be a file written by Jupyter but %s is not one; start the kernel from Jupyter, or try braid run"
              .formatted(file));
    }
    try {
      var text = Files.readString(file);
      if (JsonParser.parseString(text) instanceof JsonObject json) {
        return json.has("registration_port")
            ? registration(file, json)
            : connection(file, text, json);
      }
      throw new JsonParseException("no object");
    } catch (JsonParseException | CharacterCodingException e) {
      throw new BraidException(
          "connection file must be JSON but %s is not; start the kernel from Jupyter"
              .formatted(file),
          e);
    }
  }

  private static ConnectionFile connection(Path file, String text, JsonObject json) {
    var sockets = KernelConnectionProperties.parse(text);
    if (sockets.getTransport() == null
        || sockets.getIp() == null
        || sockets.getKey() == null
        || sockets.getSignatureScheme() == null) {
      throw new BraidException(
          "connection file must hold transport, ip, ports, key and signature_scheme but %s does not; start the kernel from Jupyter"
              .formatted(file));
    }
    return new ConnectionFile(sockets, keys(json), Optional.empty(), "");
  }

  private static ConnectionFile registration(Path file, JsonObject json) {
    var transport = text(json, "transport");
    var ip = text(json, "registration_ip");
    var port =
        text(json, "registration_port")
            .filter(value -> value.matches("[0-9]{1,5}"))
            .map(Integer::valueOf);
    var scheme = text(json, "signature_scheme");
    var key = text(json, "key");
    var id = text(json, "kernel_id");
    if (ip.isEmpty()
        || port.filter(number -> number <= MAX_PORT).isEmpty()
        || scheme.isEmpty()
        || key.isEmpty()
        || id.isEmpty()) {
      throw new BraidException(
          "registration file must hold kernel_id, transport, registration_ip, registration_port, key and signature_scheme but %s does not; start the kernel from Jupyter"
              .formatted(file));
    }
    if (!transport.equals(Optional.of("tcp"))) {
      throw new BraidException(
          "transport of a registration must be tcp but was %s; start the kernel with --KernelManager.transport=tcp"
              .formatted(transport.orElse("missing")));
    }
    var sockets =
        new KernelConnectionProperties(
            text(json, "ip").orElse(""), 0, 0, 0, 0, 0, "tcp", scheme.get(), key.get());
    return new ConnectionFile(
        sockets, keys(json), Optional.of(new InetSocketAddress(ip.get(), port.get())), id.get());
  }

  private static Optional<CurveKeys> keys(JsonObject json) {
    var publicKey = text(json, "curve_publickey");
    var secretKey = text(json, "curve_secretkey");
    if (publicKey.isPresent() != secretKey.isPresent()) {
      throw new BraidException(
          "curve_publickey and curve_secretkey must both be in the connection file but only %s is; start the kernel from Jupyter"
              .formatted(publicKey.isPresent() ? "curve_publickey" : "curve_secretkey"));
    }
    return publicKey.map(key -> CurveKeys.of(key, secretKey.get()));
  }

  private static Optional<String> text(JsonObject json, String name) {
    return Optional.ofNullable(json.get(name))
        .filter(JsonElement::isJsonPrimitive)
        .map(JsonElement::getAsString);
  }

  /// Returns a registration file's sockets at this address, if it names none itself.
  public KernelConnectionProperties socketsAt(String ip) {
    return sockets.getIp().isEmpty()
        ? new KernelConnectionProperties(
            ip,
            0,
            0,
            0,
            0,
            0,
            sockets.getTransport(),
            sockets.getSignatureScheme(),
            sockets.getKey())
        : sockets;
  }
}
