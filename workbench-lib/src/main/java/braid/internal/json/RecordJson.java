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
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Writes records as JSON objects and reads them back, strictly: every component must be present
/// and of its type, and other fields are errors. Components are numbers, strings, booleans, enums,
/// records, and lists, sets and optionals of these. A record whose declared type is a sealed
/// interface has its class's name in the field `type`.
///
/// Values of some classes can be [#naming named]: they are written as their names.
public final class RecordJson {
  private static final String TYPE = "type";
  private static final int MOST_CHARACTERS = 60;

  private final Map<Class<?>, Map<String, Object>> named = new LinkedHashMap<>();

  /// Writes values of a class as their names, and reads names as these values.
  public <T> RecordJson naming(Class<T> type, Map<String, T> values) {
    named.put(type, new LinkedHashMap<>(values));
    return this;
  }

  /// Returns the tree of a document.
  ///
  /// @param document its name, for messages
  public static JsonElement parse(String document, String json) {
    try (var reader = new JsonReader(new StringReader(json))) {
      reader.setStrictness(Strictness.STRICT);
      var tree = JsonParser.parseReader(reader);
      if (reader.peek() != JsonToken.END_DOCUMENT) {
        throw new BraidException(document + ": more follows after the end of the JSON object");
      }
      return tree;
    } catch (JsonParseException | IOException e) {
      var line = String.valueOf(e.getMessage()).lines().findFirst().orElse("no reason given");
      throw new BraidException(document + ": not JSON: " + line, e);
    }
  }

  public JsonElement write(Object value, Type declared) {
    var type = raw(declared);
    if (named.containsKey(type)) {
      return new JsonPrimitive(
          named.get(type).entrySet().stream()
              .filter(each -> each.getValue().equals(value))
              .findFirst()
              .orElseThrow(
                  () ->
                      new BraidException(
                          "%s `%s` is not declared; add it to the builder"
                              .formatted(type.getSimpleName().toLowerCase(Locale.ROOT), value)))
              .getKey());
    }
    return switch (value) {
      case Optional<?> optional ->
          optional.isEmpty() ? JsonNull.INSTANCE : write(optional.get(), argument(declared));
      case Collection<?> all -> {
        var array = new JsonArray();
        all.forEach(each -> array.add(write(each, argument(declared))));
        yield array;
      }
      case Record record -> {
        var object = new JsonObject();
        if (type.isSealed()) {
          object.addProperty(TYPE, record.getClass().getSimpleName());
        }
        for (var component : record.getClass().getRecordComponents()) {
          object.add(
              component.getName(), write(get(component, record), component.getGenericType()));
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

  /// Reads a value of a type.
  ///
  /// @param place position in the document, for messages
  /// @throws BraidException that names the position
  public Object read(String place, JsonElement json, Type declared) {
    var type = raw(declared);
    if (named.containsKey(type)) {
      var value = named.get(type).get(text(place, json));
      if (value == null) {
        throw invalid(place, "one of " + String.join(", ", named.get(type).keySet()), json);
      }
      return value;
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
    if (type.isSealed() || type.isRecord()) {
      return record(place, json, type);
    }
    if (type.isEnum()) {
      var name = text(place, json);
      return Arrays.stream(type.getEnumConstants())
          .filter(each -> ((Enum<?>) each).name().equals(name))
          .findFirst()
          .orElseThrow(
              () ->
                  invalid(
                      place,
                      "one of "
                          + Arrays.stream(type.getEnumConstants())
                              .map(each -> ((Enum<?>) each).name())
                              .collect(Collectors.joining(", ")),
                      json));
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
    if (!(json instanceof JsonObject object)) {
      throw invalid(place, "an object", json);
    }
    var type = declared;
    if (declared.isSealed()) {
      var classes = records(declared).toList();
      var name = text(place + "." + TYPE, field(place, object, TYPE));
      type =
          classes.stream()
              .filter(each -> each.getSimpleName().equals(name))
              .findFirst()
              .orElseThrow(
                  () ->
                      invalid(
                          place + "." + TYPE,
                          "one of "
                              + classes.stream()
                                  .map(Class::getSimpleName)
                                  .collect(Collectors.joining(", ")),
                          new JsonPrimitive(name)));
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
      values[i] =
          read(place + "." + name, field(place, object, name), components[i].getGenericType());
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

  private static Object number(String place, JsonElement json, Class<?> type) {
    if (json instanceof JsonPrimitive number && number.isNumber()) {
      try {
        var exact = new BigDecimal(number.getAsString());
        if (type == int.class || type == Integer.class) {
          return exact.intValueExact();
        }
        if (type == long.class || type == Long.class) {
          return exact.longValueExact();
        }
        if (type == float.class) {
          return exact.floatValue();
        }
        if (type == double.class) {
          return exact.doubleValue();
        }
      } catch (ArithmeticException _) {
        throw invalid(place, "a whole number", json);
      }
      throw new IllegalArgumentException("no JSON of " + type);
    }
    throw invalid(place, "a number", json);
  }

  private static BraidException invalid(String place, String wanted, JsonElement found) {
    var text = found.toString();
    return new BraidException(
        "%s must be %s but was %s"
            .formatted(
                place,
                wanted,
                text.length() > MOST_CHARACTERS
                    ? text.substring(0, MOST_CHARACTERS) + "..."
                    : text));
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

  private static Type argument(Type type) {
    return ((ParameterizedType) type).getActualTypeArguments()[0];
  }
}
