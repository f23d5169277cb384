package braid.launcher.kernel.channels;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.UUID;

/// One Jupyter message. Header and parent stay JSON, so that a parent returns to its client
/// unchanged. `identities` is the source of a request and the destination of a reply; on IOPub, the
/// topic.
public record Message(
    List<byte[]> identities,
    JsonObject header,
    JsonObject parent,
    JsonObject metadata,
    JsonObject content,
    List<byte[]> buffers) {
  /// Largest message of a client.
  public static final int MAX_BYTES = 16 << 20;

  /// Version of Jupyter's protocol, also in kernelspecs: a kernel of 5.6 can register itself.
  public static final String PROTOCOL_VERSION = "5.6";

  /// Session id of all messages of this process; clients detect a restart by it.
  private static final String SESSION_ID = UUID.randomUUID().toString();

  public Message {
    identities = List.copyOf(identities);
    buffers = List.copyOf(buffers);
  }

  /// Returns a reply to the sender of `parent`.
  public static Message reply(Message parent, String type, JsonObject content) {
    return new Message(
        parent.identities, newHeader(type), parent.header, new JsonObject(), content, List.of());
  }

  /// Returns a message to all subscribers; without a parent it belongs to no request.
  public static Message publication(Optional<Message> parent, String type, JsonObject content) {
    var topic = ("kernel." + SESSION_ID + "." + type).getBytes(MessageCodec.CHARSET);
    var parentHeader = parent.map(Message::header).orElseGet(JsonObject::new);
    return new Message(
        List.of(topic), newHeader(type), parentHeader, new JsonObject(), content, List.of());
  }

  /// Returns the first message to a subscriber, which then knows that it misses none.
  static Message welcome(byte[] topic) {
    var content = new JsonObject();
    content.addProperty("subscription", new String(topic, MessageCodec.CHARSET));
    return new Message(
        List.of(topic),
        newHeader("iopub_welcome"),
        new JsonObject(),
        new JsonObject(),
        content,
        List.of());
  }

  public String id() {
    return header.get("msg_id").getAsString();
  }

  public String type() {
    return header.get("msg_type").getAsString();
  }

  /// @throws MalformedMessage if the content lacks this field, or it is not a string
  public String text(String field) throws MalformedMessage {
    return field(field, "a string")
        .filter(Message::isString)
        .map(JsonElement::getAsString)
        .orElseThrow(() -> unlike(field, "a string"));
  }

  /// @throws MalformedMessage if the field is not a string
  public String text(String field, String otherwise) throws MalformedMessage {
    return content.has(field) ? text(field) : otherwise;
  }

  public boolean flag(String field, boolean otherwise) throws MalformedMessage {
    if (!content.has(field)) {
      return otherwise;
    }
    return field(field, "true or false")
        .filter(value -> value.isJsonPrimitive() && value.getAsJsonPrimitive().isBoolean())
        .map(JsonElement::getAsBoolean)
        .orElseThrow(() -> unlike(field, "true or false"));
  }

  public int number(String field, int otherwise) throws MalformedMessage {
    var value = content.get(field);
    if (value == null || value.isJsonNull()) {
      return otherwise;
    }
    if (!value.isJsonPrimitive() || !value.getAsJsonPrimitive().isNumber()) {
      throw unlike(field, "a number");
    }
    return value.getAsInt();
  }

  public JsonObject object(String field) throws MalformedMessage {
    var value = content.get(field);
    if (value == null || value.isJsonNull()) {
      return new JsonObject();
    }
    if (!value.isJsonObject()) {
      throw unlike(field, "an object");
    }
    return value.getAsJsonObject();
  }

  private Optional<JsonElement> field(String field, String rule) throws MalformedMessage {
    if (!content.has(field)) {
      throw new MalformedMessage(type() + " needs `" + field + "`, " + rule + ", but has none");
    }
    return Optional.of(content.get(field));
  }

  private MalformedMessage unlike(String field, String rule) {
    return new MalformedMessage(
        "`" + field + "` of " + type() + " must be " + rule + " but was " + content.get(field));
  }

  private static boolean isString(JsonElement value) {
    return value.isJsonPrimitive() && value.getAsJsonPrimitive().isString();
  }

  private static JsonObject newHeader(String type) {
    var header = new JsonObject();
    header.addProperty("msg_id", UUID.randomUUID().toString());
    header.addProperty("msg_type", type);
    header.addProperty("session", SESSION_ID);
    header.addProperty("username", "kernel");
    header.addProperty("date", Instant.now().toString());
    header.addProperty("version", PROTOCOL_VERSION);
    return header;
  }
}
