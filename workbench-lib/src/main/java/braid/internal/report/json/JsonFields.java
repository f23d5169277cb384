package braid.internal.report.json;

import braid.internal.json.RecordJson;
import braid.model.BraidException;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.RecordComponent;
import java.math.BigDecimal;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;

/// A JSON object read strictly: every field must be present and of its type, and others are errors.
/// A saved run is evidence, so unknown content is refused rather than skipped.
record JsonFields(String subject, JsonObject object) {

  /// Parses a whole document, which must be `subject` in exactly this `format`.
  static JsonFields document(String subject, String format, String json) {
    var fields = new JsonFields(subject, asObject(subject, RecordJson.parse(subject, json)));
    var found = fields.object.get("format");
    if (found == null || !found.equals(new JsonPrimitive(format))) {
      throw new BraidException(
          subject
              + ": field `format` must be \""
              + format
              + "\" but was "
              + (found == null ? "missing" : abbreviated(found))
              + "; it is not Braid's or another version wrote it");
    }
    return fields;
  }

  JsonFields only(String... names) {
    var known = Set.of(names);
    for (var name : object.keySet()) {
      if (!known.contains(name)) {
        throw new BraidException(
            subject + ": unknown field `" + name + "`; known are " + String.join(", ", names));
      }
    }
    return this;
  }

  /// Returns the names of a record's components, followed by `others`.
  static String[] components(Class<? extends Record> type, String... others) {
    return Stream.concat(
            Arrays.stream(type.getRecordComponents()).map(RecordComponent::getName),
            Arrays.stream(others))
        .toArray(String[]::new);
  }

  /// Returns the record whose components are the fields of the same names.
  ///
  /// @param absent values of components whose fields may be missing
  <R extends Record> R record(Class<R> type, Map<String, Object> absent) {
    var components = type.getRecordComponents();
    var types = Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new);
    var values =
        Arrays.stream(components)
            .map(component -> value(component, absent.get(component.getName())))
            .toArray();
    try {
      return type.getDeclaredConstructor(types).newInstance(values);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof BraidException refused) {
        throw new BraidException(subject + ": " + refused.getMessage(), refused);
      }
      throw new IllegalStateException(type + " failed in its constructor", e);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(type + " has no constructor that can be called", e);
    }
  }

  private Object value(RecordComponent component, @Nullable Object absent) {
    var name = component.getName();
    if (absent != null && !has(name)) {
      return absent;
    }
    return switch (component.getGenericType().getTypeName()) {
      case "int" -> whole(name);
      case "boolean" -> truth(name);
      case "java.util.List<java.lang.Integer>" -> wholes32(name);
      case "java.util.Set<java.lang.String>" -> Set.copyOf(textList(name));
      case "java.lang.String" -> text(name);
      default -> {
        var type = component.getType();
        if (!type.isRecord()) {
          yield constant(text(name), name, type.asSubclass(Enum.class).getEnumConstants());
        }
        var inner = type.asSubclass(Record.class);
        yield object(name).only(components(inner)).record(inner, Map.of());
      }
    };
  }

  JsonFields object(String name) {
    var inner = subject + " `" + name + "`";
    return new JsonFields(inner, asObject(inner, field(name)));
  }

  /// Returns whether an optional field is present.
  boolean has(String name) {
    return object.has(name);
  }

  String text(String name) {
    var value = field(name);
    if (!(value instanceof JsonPrimitive p) || !p.isString()) {
      throw wrong(name, "a string", value);
    }
    return value.getAsString();
  }

  <E extends Enum<E>> List<E> listOf(String name, E[] constants) {
    return textList(name).stream().map(text -> constant(text, name, constants)).toList();
  }

  /// Returns the constant of exactly that name.
  private <E extends Enum<?>> E constant(String text, String name, E[] constants) {
    for (var constant : constants) {
      if (constant.name().equals(text)) {
        return constant;
      }
    }
    var names = Arrays.stream(constants).map(Enum::name).collect(Collectors.joining(", "));
    throw new BraidException(
        subject + ": field `" + name + "` must be one of " + names + " but was " + text);
  }

  int whole(String name) {
    return fit(name, wholeOf("`" + name + "`", field(name)));
  }

  List<Integer> wholes32(String name) {
    return wholes(name).stream().map(value -> fit(name, value)).toList();
  }

  private int fit(String name, long value) {
    if (value != (int) value) {
      throw wrong(name, "a 32-bit whole number", new JsonPrimitive(value));
    }
    return (int) value;
  }

  long wholeLong(String name) {
    return wholeOf("`" + name + "`", field(name));
  }

  boolean truth(String name) {
    var value = field(name);
    if (!(value instanceof JsonPrimitive p) || !p.isBoolean()) {
      throw wrong(name, "true or false", value);
    }
    return value.getAsBoolean();
  }

  /// Returns an object of whole numbers.
  SequencedMap<String, Long> counts(String name) {
    var inner = asObject(subject + " field `" + name + "`", field(name));
    var map = new LinkedHashMap<String, Long>();
    for (var key : inner.keySet()) {
      map.put(key, new JsonFields(subject + " `" + name + "`", inner).wholeLong(key));
    }
    return Collections.unmodifiableSequencedMap(map);
  }

  SequencedMap<String, String> texts(String name) {
    var inner = asObject(subject + " field `" + name + "`", field(name));
    var map = new LinkedHashMap<String, String>();
    for (var key : inner.keySet()) {
      map.put(key, new JsonFields(subject + " `" + name + "`", inner).text(key));
    }
    return Collections.unmodifiableSequencedMap(map);
  }

  List<String> textList(String name) {
    return elements(name).stream()
        .map(
            e -> {
              if (!(e instanceof JsonPrimitive p) || !p.isString()) {
                throw wrong(name, "an array of strings", e);
              }
              return e.getAsString();
            })
        .toList();
  }

  List<Long> wholes(String name) {
    return elements(name).stream().map(e -> wholeOf("`" + name + "`", e)).toList();
  }

  List<JsonFields> objects(String name) {
    return elements(name).stream()
        .map(
            e ->
                new JsonFields(
                    subject + " `" + name + "`", asObject(subject + " `" + name + "`", e)))
        .toList();
  }

  /// Returns rows of exactly `width` whole numbers.
  List<long[]> rows(String name, int width) {
    return elements(name).stream()
        .map(
            row -> {
              if (!(row instanceof JsonArray a) || a.size() != width) {
                throw wrong(name, "rows of " + width + " whole numbers", row);
              }
              var values = new long[width];
              for (int i = 0; i < width; i++) {
                values[i] = wholeOf("`" + name + "`", a.get(i));
              }
              return values;
            })
        .toList();
  }

  private List<JsonElement> elements(String name) {
    var value = field(name);
    if (!(value instanceof JsonArray array)) {
      throw wrong(name, "an array", value);
    }
    return StreamSupport.stream(array.spliterator(), false).toList();
  }

  private JsonElement field(String name) {
    var value = object.get(name);
    if (value == null) {
      throw new BraidException(subject + ": field `" + name + "` is missing");
    }
    return value;
  }

  private long wholeOf(String name, JsonElement value) {
    if (value instanceof JsonPrimitive p && p.isNumber()) {
      try {
        return new BigDecimal(p.getAsString()).longValueExact();
      } catch (ArithmeticException e) {
        throw new BraidException(
            subject + ": " + name + " must be a whole number but was " + abbreviated(value), e);
      }
    }
    throw new BraidException(
        subject + ": " + name + " must be a whole number but was " + abbreviated(value));
  }

  private static JsonObject asObject(String subject, JsonElement value) {
    if (value instanceof JsonObject o) {
      return o;
    }
    throw new BraidException(subject + " must be a JSON object but was " + abbreviated(value));
  }

  private BraidException wrong(String name, String rule, JsonElement value) {
    return new BraidException(
        subject + ": field `" + name + "` must be " + rule + " but was " + abbreviated(value));
  }

  private static String abbreviated(JsonElement value) {
    var text = value.toString().replace('\n', ' ');
    return text.length() <= 40 ? text : text.substring(0, 40) + "…";
  }
}
