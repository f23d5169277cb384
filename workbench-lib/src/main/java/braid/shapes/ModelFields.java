package braid.shapes;

import braid.internal.json.RecordJson;
import braid.model.BraidException;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.math.BigDecimal;
import java.util.Set;

/// Fields of a model's configuration. A field that is null counts as absent, as the library that
/// writes these files reads them.
final class ModelFields {
  private static final int MOST_CHARACTERS = 4 << 20;
  private static final int MOST_SHOWN = 60;
  private static final Set<String> UNSET = Set.of("false", "0", "0.0");

  /// More than any published model has; a larger size is taken for a mistake.
  static final int MOST_SIZE = 1 << 22;

  private final String document;
  private final JsonObject fields;

  private ModelFields(String document, JsonObject fields) {
    this.document = document;
    this.fields = fields;
  }

  /// Reads the text of a configuration.
  ///
  /// @param document its name, for messages
  static ModelFields parse(String document, String json) {
    checkLength(document, json.length());
    var tree = RecordJson.parse(document, json);
    if (tree instanceof JsonObject fields) {
      return new ModelFields(document, fields);
    }
    throw new BraidException(
        "%s must be a JSON object but was %s; give the model's config.json"
            .formatted(document, shown(tree)));
  }

  static void checkLength(String document, long length) {
    if (length > MOST_CHARACTERS) {
      throw new BraidException(
          "%s must have at most %d characters but has %d; give the model's config.json, not its weights"
              .formatted(document, MOST_CHARACTERS, length));
    }
  }

  String document() {
    return document;
  }

  boolean has(String name) {
    return fields.has(name) && !fields.get(name).isJsonNull();
  }

  /// Returns a size.
  int size(String name) {
    return whole(name, 1);
  }

  /// Returns a size, or another one if the field is absent.
  int size(String name, int absent) {
    return has(name) ? size(name) : absent;
  }

  /// Returns a number that may be 0, which is also the number of an absent field.
  int count(String name) {
    return has(name) ? whole(name, 0) : 0;
  }

  private int whole(String name, int least) {
    var found = field(name);
    if (found instanceof JsonPrimitive number && number.isNumber()) {
      var exact = new BigDecimal(number.getAsString());
      if (exact.compareTo(BigDecimal.valueOf(least)) >= 0
          && exact.compareTo(BigDecimal.valueOf(MOST_SIZE)) <= 0
          && exact.stripTrailingZeros().scale() <= 0) {
        return exact.intValueExact();
      }
    }
    throw new BraidException(
        "%s: `%s` must be a whole number of %d..%d but was %s; correct it or give the published file"
            .formatted(document, name, least, MOST_SIZE, shown(found)));
  }

  /// Returns a flag, or another one if the field is absent.
  boolean flag(String name, boolean absent) {
    if (!has(name)) {
      return absent;
    }
    if (field(name) instanceof JsonPrimitive flag && flag.isBoolean()) {
      return flag.getAsBoolean();
    }
    throw new BraidException(
        "%s: `%s` must be true or false but was %s; correct it or give the published file"
            .formatted(document, name, shown(field(name))));
  }

  /// Returns whether a field has a value other than null, false and 0.
  boolean isSet(String name) {
    return has(name) && !UNSET.contains(field(name).toString());
  }

  /// Returns the value of a field, for messages.
  String value(String name) {
    return shown(field(name));
  }

  /// Returns a text, or another one if the field is absent.
  String text(String name, String absent) {
    return has(name) ? text(name) : absent;
  }

  String text(String name) {
    if (field(name) instanceof JsonPrimitive text && text.isString()) {
      return text.getAsString();
    }
    throw new BraidException(
        "%s: `%s` must be a string but was %s; correct it or give the published file"
            .formatted(document, name, shown(field(name))));
  }

  private JsonElement field(String name) {
    if (!has(name)) {
      throw new BraidException(
          "%s: `%s` must be given but is missing; add it or give the published file"
              .formatted(document, name));
    }
    return fields.get(name);
  }

  private static String shown(JsonElement found) {
    return shortened(found.toString());
  }

  /// Returns a text of a file as part of one line.
  static String shortened(String text) {
    var line = text.replaceAll("\\p{Cntrl}", "?");
    return line.length() > MOST_SHOWN ? line.substring(0, MOST_SHOWN) + "..." : line;
  }
}
