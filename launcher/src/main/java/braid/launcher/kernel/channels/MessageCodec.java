package braid.launcher.kernel.channels;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.Strictness;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.dflib.jjava.jupyter.messages.HMACGenerator;

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

  private final HMACGenerator signer;
  private final Gson json =
      new GsonBuilder()
          .setStrictness(Strictness.STRICT)
          .serializeNulls()
          .disableHtmlEscaping()
          .create();

  MessageCodec(HMACGenerator signer) {
    this.signer = signer;
  }

  Message decode(List<byte[]> frames) throws MalformedMessage {
    int delimiter = 0;
    while (delimiter < frames.size() && !Arrays.equals(frames.get(delimiter), DELIMITER)) {
      delimiter++;
    }
    int needed = delimiter + 2 + SIGNED_FRAMES;
    if (delimiter == frames.size()) {
      throw new MalformedMessage("no <IDS|MSG> in a message of " + frames.size() + " frames");
    }
    if (frames.size() < needed) {
      throw new MalformedMessage(
          "a message must have " + needed + " frames but had " + frames.size() + ": truncated");
    }
    var signed = frames.subList(delimiter + 2, needed);
    var expected = signer.calculateSignature(signed.toArray(byte[][]::new)).getBytes(CHARSET);
    if (!MessageDigest.isEqual(expected, frames.get(delimiter + 1))) {
      throw new MalformedMessage("the signature does not match this kernel's key");
    }
    var header = parse("header", signed.get(0));
    for (var name : List.of("msg_id", "msg_type")) {
      var value = header.get(name);
      if (value == null
          || !value.isJsonPrimitive()
          || !value.getAsJsonPrimitive().isString()
          || value.getAsString().isEmpty()) {
        throw new MalformedMessage("the header's " + name + " must be a string but was " + value);
      }
    }
    return new Message(
        frames.subList(0, delimiter),
        header,
        parse("parent header", signed.get(1)),
        parse("metadata", signed.get(2)),
        parse("content", signed.get(3)),
        frames.subList(needed, frames.size()));
  }

  List<byte[]> encode(Message message) {
    byte[][] signed = {
      bytes(message.header()),
      bytes(message.parent()),
      bytes(message.metadata()),
      bytes(message.content())
    };
    var frames = new ArrayList<>(message.identities());
    frames.add(DELIMITER);
    frames.add(signer.calculateSignature(signed).getBytes(CHARSET));
    frames.addAll(Arrays.asList(signed));
    frames.addAll(message.buffers());
    return frames;
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
