package braid.internal.json;

import braid.model.BraidException;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.gson.stream.MalformedJsonException;
import java.io.IOException;
import java.io.StringReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Writes records as JSON objects and reads them back, strictly: every component must be present
/// and of its type, and other fields are errors. Components are numbers, strings, booleans, enums,
/// records, lists, sets and optionals of these, maps by name, and JSON itself. A record whose
/// declared type is a sealed interface has its class's name in the field `type`.
///
/// Values of some classes can have a [#form form of their own], and fields that earlier versions
/// did not write can be [#absent absent].
public final class RecordJson {
  private static final String TYPE = "type";
  private static final String FORMAT = "format";
  private static final int MOST_CHARACTERS = 60;
  private static final Set<Class<?>> WHOLE =
      Set.of(int.class, Integer.class, long.class, Long.class);
  private static final Pattern PLACE =
      Pattern.compile("(.*?) at line (\\d+) column (\\d+) path (\\S+).*", Pattern.DOTALL);
  private static final Pattern GSON_ADVICE = Pattern.compile("Use JsonReader\\.setStrictness.*");

  private record Form<T>(
      Function<T, JsonElement> writing, BiFunction<String, JsonElement, T> reading) {}

  private final Map<Class<?>, Form<Object>> forms = new HashMap<>();
  private final Map<Class<?>, Map<String, Object>> absent = new HashMap<>();
  private final Map<Class<?>, Map<String, Object>> leftOut = new HashMap<>();

  /// Writes and reads values of a class by functions; `reading` gets the position, for messages.
  @SuppressWarnings("unchecked") // Only values of this class are written.
  public <T> RecordJson form(
      Class<T> type, Function<T, JsonElement> writing, BiFunction<String, JsonElement, T> reading) {
    forms.put(type, (Form<Object>) new Form<>(writing, reading));
    return this;
  }

  /// Writes values of a class as their names, and reads names as these values.
  public <T> RecordJson naming(Class<T> type, Map<String, T> values) {
    return form(
        type,
        value ->
            new JsonPrimitive(
                values.entrySet().stream()
                    .filter(each -> each.getValue().equals(value))
                    .findFirst()
                    .orElseThrow(
                        () ->
                            new BraidException(
                                "%s `%s` is not declared; add it to the builder"
                                    .formatted(
                                        type.getSimpleName().toLowerCase(Locale.ROOT), value)))
                    .getKey()),
        (place, json) -> oneOf(place, json, values));
  }

  /// Reads these values of a record's components if their fields are absent.
  public RecordJson absent(Class<? extends Record> type, Map<String, Object> values) {
    absent.put(type, values);
    return this;
  }

  /// Leaves out the components that have these values, and reads them if their fields are absent.
  public RecordJson leavingOut(Class<? extends Record> type, Map<String, Object> values) {
    leftOut.put(type, values);
    return absent(type, values);
  }

  /// Returns the tree of a document.
  ///
  /// @param document its name, for messages
  public static JsonElement parse(String document, String json) {
    try (var reader = new JsonReader(new StringReader(json))) {
      reader.setStrictness(Strictness.STRICT);
      var tree = tree(reader);
      if (reader.peek() != JsonToken.END_DOCUMENT) {
        throw new MalformedJsonException("more follows after its end");
      }
      return tree;
    } catch (JsonParseException | IOException e) {
      throw new BraidException(
          "%s must be JSON but is not: %s; correct that place".formatted(document, reason(e)), e);
    }
  }

  /// Reads a value like Gson, which keeps the last of several fields of one name.
  private static JsonElement tree(JsonReader reader) throws IOException {
    return switch (reader.peek()) {
      case BEGIN_OBJECT -> {
        var object = new JsonObject();
        reader.beginObject();
        while (reader.hasNext()) {
          var name = reader.nextName();
          if (object.has(name)) {
            throw new MalformedJsonException(
                "field `%s` is given twice%s"
                    .formatted(name, reader.toString().substring("JsonReader".length())));
          }
          object.add(name, tree(reader));
        }
        reader.endObject();
        yield object;
      }
      case BEGIN_ARRAY -> {
        var array = new JsonArray();
        reader.beginArray();
        while (reader.hasNext()) {
          array.add(tree(reader));
        }
        reader.endArray();
        yield array;
      }
      default -> JsonParser.parseReader(reader);
    };
  }

  private static String reason(Exception failure) {
    Throwable deepest = failure;
    while (deepest.getCause() != null) {
      deepest = deepest.getCause();
    }
    var message = String.valueOf(deepest.getMessage());
    var place = PLACE.matcher(message);
    if (!place.matches()) {
      return message.lines().findFirst().orElse("it cannot be read");
    }
    var problem = GSON_ADVICE.matcher(place.group(1)).replaceAll("").strip();
    return "line %s column %s (%s): %s"
        .formatted(
            place.group(2),
            place.group(3),
            shortened(place.group(4)),
            problem.isEmpty() ? "not a JSON value" : problem);
  }

  /// Returns the fields of a document of this format.
  public static JsonObject document(String name, String format, String json) {
    return formatted(name, format, parse(name, json));
  }

  /// Returns the fields of an object whose `format` is this one, without it.
  public static JsonObject formatted(String place, String format, JsonElement json) {
    var fields = new JsonObject();
    fields.asMap().putAll(object(place, json).asMap());
    var found = fields.remove(FORMAT);
    if (found == null || !found.equals(new JsonPrimitive(format))) {
      throw new BraidException(
          "%s: field `format` must be \"%s\" but was %s; it is not Braid's or another version wrote it"
              .formatted(place, format, found == null ? "missing" : shown(found)));
    }
    return fields;
  }

  /// Returns a document of this format, with a record's components as fields.
  public JsonObject write(String format, Record record) {
    var document = new JsonObject();
    document.addProperty(FORMAT, format);
    document.asMap().putAll(((JsonObject) write(record, record.getClass())).asMap());
    return document;
  }

  public JsonElement write(Object value, Type declared) {
    var type = raw(declared);
    if (forms.containsKey(type)) {
      return forms.get(type).writing().apply(value);
    }
    return switch (value) {
      case JsonElement json -> json;
      case Optional<?> optional ->
          optional.isEmpty() ? JsonNull.INSTANCE : write(optional.get(), argument(declared));
      case Collection<?> all -> {
        var array = new JsonArray();
        all.forEach(each -> array.add(write(each, argument(declared))));
        yield array;
      }
      case Map<?, ?> map -> {
        var object = new JsonObject();
        map.forEach((name, each) -> object.add((String) name, write(each, argument(declared))));
        yield object;
      }
      case Record record -> {
        var object = new JsonObject();
        var ordinary = leftOut.getOrDefault(record.getClass(), Map.of());
        if (type.isSealed()) {
          object.addProperty(TYPE, record.getClass().getSimpleName());
        }
        for (var component : record.getClass().getRecordComponents()) {
          var part = get(component, record);
          if (!part.equals(ordinary.get(component.getName()))) {
            object.add(component.getName(), write(part, component.getGenericType()));
          }
        }
        yield object;
      }
      case Enum<?> constant -> new JsonPrimitive(constant.name());
      case String text -> new JsonPrimitive(text);
      case Boolean flag -> new JsonPrimitive(flag);
      case Number number -> new JsonPrimitive(number);
      default -> throw new IllegalArgumentException("no JSON of " + type);
    };
  }

  /// Reads a value of a class.
  public <T> T read(String place, JsonElement json, Class<T> type) {
    return type.cast(read(place, json, (Type) type));
  }

  /// Reads a value of a type.
  ///
  /// @param place position in the document, for messages
  /// @throws BraidException that names the position
  private Object read(String place, JsonElement json, Type declared) {
    var type = raw(declared);
    if (forms.containsKey(type)) {
      return forms.get(type).reading().apply(place, json);
    }
    if (type == JsonElement.class) {
      return json;
    }
    if (type == Optional.class) {
      return json.isJsonNull()
          ? Optional.empty()
          : Optional.of(read(place, json, argument(declared)));
    }
    if (Collection.class.isAssignableFrom(type)) {
      if (!(json instanceof JsonArray array)) {
        throw invalid(place, "a list", json);
      }
      var all = type == List.class ? new ArrayList<Object>() : new LinkedHashSet<Object>();
      for (int i = 0; i < array.size(); i++) {
        all.add(read("%s[%d]".formatted(place, i), array.get(i), argument(declared)));
      }
      return all;
    }
    if (Map.class.isAssignableFrom(type)) {
      var map = new LinkedHashMap<String, Object>();
      for (var field : object(place, json).entrySet()) {
        map.put(
            field.getKey(),
            read(place + "." + field.getKey(), field.getValue(), argument(declared)));
      }
      return Collections.unmodifiableSequencedMap(map);
    }
    if (type.isSealed() || type.isRecord()) {
      return record(place, json, type);
    }
    if (type.isEnum()) {
      return oneOf(
          place,
          json,
          byName(Arrays.stream(type.getEnumConstants()), each -> ((Enum<?>) each).name()));
    }
    if (type == String.class) {
      return text(place, json);
    }
    if (type == boolean.class) {
      if (json instanceof JsonPrimitive flag && flag.isBoolean()) {
        return flag.getAsBoolean();
      }
      throw invalid(place, "true or false", json);
    }
    return number(place, json, type);
  }

  private Object record(String place, JsonElement json, Class<?> declared) {
    var object = object(place, json);
    var type = declared;
    if (declared.isSealed()) {
      type =
          oneOf(
              place + "." + TYPE,
              field(place, object, TYPE),
              byName(records(declared), Class::getSimpleName));
    }
    var components = type.getRecordComponents();
    var known =
        Stream.concat(
                declared.isSealed() ? Stream.of(TYPE) : Stream.empty(),
                Arrays.stream(components).map(RecordComponent::getName))
            .toList();
    for (var name : object.keySet()) {
      if (!known.contains(name)) {
        throw new BraidException(
            "%s: unknown field `%s`; known are %s"
                .formatted(place, name, String.join(", ", known)));
      }
    }
    var values = new Object[components.length];
    for (int i = 0; i < components.length; i++) {
      var name = components[i].getName();
      var missing = absent.getOrDefault(type, Map.of()).get(name);
      values[i] =
          missing != null && !object.has(name)
              ? missing
              : read(
                  place + "." + name, field(place, object, name), components[i].getGenericType());
    }
    return created(place, type, components, values);
  }

  private static Object created(
      String place, Class<?> type, RecordComponent[] components, Object[] values) {
    try {
      var constructor =
          type.getDeclaredConstructor(
              Arrays.stream(components).map(RecordComponent::getType).toArray(Class[]::new));
      constructor.setAccessible(true);
      return constructor.newInstance(values);
    } catch (InvocationTargetException e) {
      var cause = e.getTargetException();
      throw new BraidException(place + ": " + cause.getMessage(), cause);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  private static JsonObject object(String place, JsonElement json) {
    if (json instanceof JsonObject object) {
      return object;
    }
    throw invalid(place, "a JSON object", json);
  }

  private static JsonElement field(String place, JsonObject object, String name) {
    var value = object.get(name);
    if (value == null) {
      throw new BraidException("%s: field `%s` is missing".formatted(place, name));
    }
    return value;
  }

  private static String text(String place, JsonElement json) {
    if (json instanceof JsonPrimitive text && text.isString()) {
      return text.getAsString();
    }
    throw invalid(place, "a string", json);
  }

  private static <T> T oneOf(String place, JsonElement json, Map<String, T> values) {
    var value = values.get(text(place, json));
    if (value == null) {
      throw invalid(place, "one of " + String.join(", ", values.keySet()), json);
    }
    return value;
  }

  /// Returns values by name, in order; of several with one name the first.
  public static <T> Map<String, T> byName(Stream<T> all, Function<T, String> name) {
    var values = new LinkedHashMap<String, T>();
    all.forEach(each -> values.putIfAbsent(name.apply(each), each));
    return values;
  }

  private static Object number(String place, JsonElement json, Class<?> type) {
    boolean single = type == float.class;
    boolean real = single || type == double.class || type == Double.class;
    if (!real && !WHOLE.contains(type)) {
      throw new IllegalArgumentException("no JSON of " + type);
    }
    if (json instanceof JsonPrimitive number && number.isNumber()) {
      var exact = new BigDecimal(number.getAsString());
      double rounded = single ? exact.floatValue() : exact.doubleValue();
      if (real && Double.isFinite(rounded)) {
        return single ? (Object) (float) rounded : (Object) rounded;
      }
      try {
        if (!real) {
          boolean narrow = type == int.class || type == Integer.class;
          return narrow ? (Object) exact.intValueExact() : (Object) exact.longValueExact();
        }
      } catch (ArithmeticException _) {
        throw invalid(place, "a whole number", json);
      }
    }
    throw invalid(place, real ? "a number" : "a whole number", json);
  }

  private static BraidException invalid(String place, String wanted, JsonElement found) {
    return new BraidException("%s must be %s but was %s".formatted(place, wanted, shown(found)));
  }

  private static String shown(JsonElement found) {
    return shortened(found.toString());
  }

  private static String shortened(String text) {
    return text.length() > MOST_CHARACTERS ? text.substring(0, MOST_CHARACTERS) + "..." : text;
  }

  private static Stream<Class<?>> records(Class<?> type) {
    return type.isRecord()
        ? Stream.of(type)
        : Arrays.stream(type.getPermittedSubclasses()).flatMap(RecordJson::records);
  }

  private static Object get(RecordComponent component, Record record) {
    try {
      var accessor = component.getAccessor();
      accessor.setAccessible(true);
      return accessor.invoke(record);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Class<?> raw(Type type) {
    return type instanceof ParameterizedType generic
        ? (Class<?>) generic.getRawType()
        : (Class<?>) type;
  }

  /// Returns the type of elements, or of the values of a map.
  private static Type argument(Type type) {
    var arguments = ((ParameterizedType) type).getActualTypeArguments();
    return arguments[arguments.length - 1];
  }
}
