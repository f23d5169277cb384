package braid.launcher.kernel.channels;

import braid.model.BraidException;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.Strictness;
import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;

/// Converts between messages and the frames of Jupyter's wire format:
///
/// ```
/// identities… | <IDS|MSG> | signature | header | parent header | metadata | content | buffers…
/// ```
///
/// The whole message is read before it is validated, so that a bad one affects no other.
final class MessageCodec {
  static final Charset CHARSET = StandardCharsets.UTF_8;

  private static final byte[] DELIMITER = "<IDS|MSG>".getBytes(CHARSET);
  private static final int SIGNED_FRAMES = 4;

  private final Mac signer;
  private final boolean unsigned;
  private final Gson json =
      new GsonBuilder()
          .setStrictness(Strictness.STRICT)
          .serializeNulls()
          .disableHtmlEscaping()
          .create();

  /// @throws BraidException if this JDK does not have the scheme
  static MessageCodec of(KernelConnectionProperties connection) {
    try {
      return new MessageCodec(connection.getSignatureScheme(), connection.getKey());
    } catch (GeneralSecurityException e) {
      throw new BraidException(
          "signature_scheme must be one this JDK has, such as hmac-sha256, but was "
              + connection.getSignatureScheme(),
          e);
    }
  }

  /// @param scheme `hmac-` and the name of a digest
  /// @param key empty for messages without signatures
  MessageCodec(String scheme, String key) throws GeneralSecurityException {
    unsigned = key.isEmpty();
    signer = Mac.getInstance(scheme.replace("-", ""));
    signer.init(new SecretKeySpec(unsigned ? new byte[1] : key.getBytes(CHARSET), scheme));
  }

  Message decode(List<byte[]> frames) throws MalformedMessage {
    int delimiter = 0;
    while (delimiter < frames.size() && !Arrays.equals(frames.get(delimiter), DELIMITER)) {
      delimiter++;
    }
    int needed = delimiter + 2 + SIGNED_FRAMES;
    if (delimiter == frames.size()) {
      throw new MalformedMessage.Forged(
          "no <IDS|MSG> in a message of " + frames.size() + " frames");
    }
    if (frames.size() < needed) {
      throw new MalformedMessage.Forged(
          "a message must have " + needed + " frames but had " + frames.size() + ": truncated");
    }
    var signed = frames.subList(delimiter + 2, needed);
    if (!MessageDigest.isEqual(signature(signed), frames.get(delimiter + 1))) {
      throw new MalformedMessage.Forged("the signature does not match this kernel's key");
    }
    return new Message(
        frames.subList(0, delimiter),
        header(signed.get(0)),
        parse("parent header", signed.get(1)),
        parse("metadata", signed.get(2)),
        parse("content", signed.get(3)),
        frames.subList(needed, frames.size()));
  }

  private byte[] signature(List<byte[]> signed) {
    signed.forEach(signer::update);
    return signature(signer);
  }

  private byte[] signature(Mac mac) {
    var digest = mac.doFinal();
    return unsigned ? new byte[0] : HexFormat.of().formatHex(digest).getBytes(CHARSET);
  }

  private JsonObject header(byte[] frame) throws MalformedMessage {
    var header = parse("header", frame);
    for (var name : List.of("msg_id", "msg_type")) {
      var value = header.get(name);
      if (value == null
          || !value.isJsonPrimitive()
          || !value.getAsJsonPrimitive().isString()
          || value.getAsString().isEmpty()) {
        throw new MalformedMessage("the header's " + name + " must be a string but was " + value);
      }
    }
    return header;
  }

  /// A message that is too large to be kept. Its signature is computed while it passes, so that
  /// only clients with the key are answered.
  final class Skim {
    private final List<byte[]> first;
    private final int delimiter;
    private final Mac mac;
    private int frame;

    private Skim(List<byte[]> first, int delimiter, Mac mac) {
      this.first = List.copyOf(first);
      this.delimiter = delimiter;
      this.mac = mac;
      first.stream().skip(delimiter + 2).limit(SIGNED_FRAMES).forEach(mac::update);
      frame = first.size() - 1;
    }

    /// Takes the start of a frame.
    void frame() {
      frame++;
    }

    void bytes(ByteBuffer part) {
      if (frame < delimiter + 2 + SIGNED_FRAMES) {
        mac.update(part);
      }
    }

    /// Returns the message without metadata and content.
    Message message() throws MalformedMessage {
      if (!MessageDigest.isEqual(signature(mac), first.get(delimiter + 1))) {
        throw new MalformedMessage.Forged("the signature does not match this kernel's key");
      }
      return new Message(
          first.subList(0, delimiter),
          header(first.get(delimiter + 2)),
          new JsonObject(),
          new JsonObject(),
          new JsonObject(),
          List.of());
    }
  }

  /// Returns the check of a message whose further frames are not kept; empty if its header is not
  /// among the first.
  Optional<Skim> skim(List<byte[]> first) {
    int delimiter = 0;
    while (delimiter < first.size() && !Arrays.equals(first.get(delimiter), DELIMITER)) {
      delimiter++;
    }
    try {
      return first.size() < delimiter + 3
          ? Optional.empty()
          : Optional.of(new Skim(first, delimiter, (Mac) signer.clone()));
    } catch (CloneNotSupportedException e) {
      return Optional.empty(); // such a message ends its connection
    }
  }

  List<byte[]> encode(Message message) {
    var signed =
        List.of(
            bytes(message.header()),
            bytes(message.parent()),
            bytes(message.metadata()),
            bytes(message.content()));
    var frames = new ArrayList<>(message.identities());
    frames.add(DELIMITER);
    frames.add(signature(signed));
    frames.addAll(signed);
    frames.addAll(message.buffers());
    return frames;
  }

  /// Returns the frames of a registration, which is a content without headers.
  List<byte[]> encode(JsonObject content) {
    var bytes = bytes(content);
    return List.of(DELIMITER, signature(List.of(bytes)), bytes);
  }

  /// Returns true for a content without headers that is signed with the key.
  boolean isSignedContent(List<byte[]> frames) {
    return frames.size() == 3
        && Arrays.equals(frames.getFirst(), DELIMITER)
        && MessageDigest.isEqual(signature(List.of(frames.getLast())), frames.get(1));
  }

  private JsonObject parse(String part, byte[] bytes) throws MalformedMessage {
    try {
      JsonObject object = json.fromJson(new String(bytes, CHARSET), JsonObject.class);
      if (object == null) {
        throw new MalformedMessage("the " + part + " is empty");
      }
      return object;
    } catch (JsonParseException | ClassCastException | StackOverflowError e) {
      throw new MalformedMessage("the " + part + " is not a JSON object", e);
    }
  }

  private byte[] bytes(JsonObject object) {
    return json.toJson(object).getBytes(CHARSET);
  }
}
