package braid.launcher.wire;

import braid.model.BraidException;
import braid.model.MimeBundle;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;

/// Encoding of messages: a record's components in order, each by its type. A record whose declared
/// type is a sealed interface begins with its number among the records of the interface. Lengths
/// are checked before memory is allocated.
public final class Wire {
  /// Largest part of a message.
  private static final int MAX_BYTES = 1 << 28;

  /// Most characters of all formats of a display together. In UTF-8 they always fit into a part.
  private static final int MAX_SHOWN_CHARS = 1 << 26;

  /// Records of a sealed interface, in order.
  private static final ClassValue<List<Class<?>>> RECORDS =
      new ClassValue<>() {
        @Override
        protected List<Class<?>> computeValue(Class<?> type) {
          return records(type).toList();
        }
      };

  /// Components and constructor of a record. The JVM makes them anew for each caller.
  @SuppressWarnings("ArrayRecordComponent")
  private record Layout(RecordComponent[] components, Constructor<?> constructor) {
    static Layout of(Class<?> type) {
      var components = type.getRecordComponents();
      try {
        return new Layout(
            components,
            type.getDeclaredConstructor(
                Arrays.stream(components).map(RecordComponent::getType).toArray(Class[]::new)));
      } catch (NoSuchMethodException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private static final ClassValue<Layout> LAYOUTS =
      new ClassValue<>() {
        @Override
        protected Layout computeValue(Class<?> type) {
          return Layout.of(type);
        }
      };

  private Wire() {}

  /// Writes a record, or a part of one.
  public static void write(DataOutput out, Object value, Type declared) throws IOException {
    if (raw(declared).isSealed()) {
      out.writeByte(RECORDS.get(raw(declared)).indexOf(value.getClass()));
    }
    switch (value) {
      case Integer number -> out.writeInt(number);
      case Long number -> out.writeLong(number);
      case Boolean flag -> out.writeBoolean(flag);
      case Character character -> out.writeChar(character);
      case String text -> writeText(out, text);
      case byte[] bytes -> writeBytes(out, bytes);
      case Enum<?> constant -> writeText(out, constant.name());
      case MimeBundle bundle -> writeBundle(out, bundle);
      case StackTraceElement frame -> {
        writeText(out, frame.getClassName());
        writeText(out, frame.getMethodName());
        writeText(out, frame.getFileName() == null ? "" : frame.getFileName());
        out.writeInt(frame.getLineNumber());
      }
      case List<?> all -> {
        out.writeInt(all.size());
        for (var each : all) {
          write(out, each, argument(declared));
        }
      }
      case Map<?, ?> texts -> writeTexts(out, texts);
      case Record record -> {
        for (var component : LAYOUTS.get(record.getClass()).components) {
          write(out, part(component, record), component.getGenericType());
        }
      }
      default -> throw new IllegalArgumentException("no encoding of " + declared);
    }
  }

  private static Object part(RecordComponent component, Record record) {
    try {
      return component.getAccessor().invoke(record);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  /// Reads what [#write] has written.
  public static <T> T read(DataInput input, Class<T> type) throws IOException {
    return type.cast(read(input, (Type) type));
  }

  private static Object read(DataInput input, Type declared) throws IOException {
    var type = raw(declared);
    if (type == int.class || type == Integer.class) {
      return input.readInt();
    } else if (type == long.class) {
      return input.readLong();
    } else if (type == boolean.class) {
      return input.readBoolean();
    } else if (type == char.class) {
      return input.readChar();
    } else if (type == String.class) {
      return readText(input);
    } else if (type == byte[].class) {
      return readBytes(input);
    } else if (type == MimeBundle.class) {
      return readBundle(input);
    } else if (type == StackTraceElement.class) {
      return new StackTraceElement(
          readText(input), readText(input), readText(input), input.readInt());
    } else if (type == List.class) {
      var all = new ArrayList<Object>();
      for (int left = input.readInt(); left > 0; left--) {
        all.add(read(input, argument(declared)));
      }
      return all;
    } else if (type == Map.class) {
      return readTexts(input);
    } else if (type.isEnum()) {
      var name = readText(input);
      return Arrays.stream(type.getEnumConstants())
          .filter(each -> ((Enum<?>) each).name().equals(name))
          .findFirst()
          .orElseThrow(() -> new IOException("an unknown " + type.getSimpleName() + ": " + name));
    } else if (type.isSealed()) {
      int kind = input.readUnsignedByte();
      var known = RECORDS.get(type);
      if (kind >= known.size()) {
        throw new IOException(
            "a message of unknown kind %d of %s".formatted(kind, type.getSimpleName()));
      }
      return record(input, known.get(kind));
    }
    return record(input, type);
  }

  private static Object record(DataInput input, Class<?> type) throws IOException {
    var layout = LAYOUTS.get(type);
    var parts = new Object[layout.components.length];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = read(input, layout.components[i].getGenericType());
    }
    try {
      return layout.constructor.newInstance(parts);
    } catch (InvocationTargetException e) {
      throw new IOException(
          "a message of kind %s has wrong parts: %s"
              .formatted(type.getSimpleName(), e.getTargetException().getMessage()),
          e);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Stream<Class<?>> records(Class<?> type) {
    return type.isSealed()
        ? Arrays.stream(type.getPermittedSubclasses()).flatMap(Wire::records)
        : Stream.of(type);
  }

  private static Class<?> raw(Type type) {
    return type instanceof ParameterizedType generic
        ? (Class<?>) generic.getRawType()
        : (Class<?>) type;
  }

  private static Type argument(Type list) {
    return ((ParameterizedType) list).getActualTypeArguments()[0];
  }

  static void writeText(DataOutput out, String text) throws IOException {
    writeBytes(out, text.getBytes(StandardCharsets.UTF_8));
  }

  static String readText(DataInput in) throws IOException {
    return new String(readBytes(in), StandardCharsets.UTF_8);
  }

  static void writeBytes(DataOutput out, byte[] bytes) throws IOException {
    if (bytes.length > MAX_BYTES) {
      throw new IOException(
          "a message part may have " + MAX_BYTES + " bytes but has " + bytes.length);
    }
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  static byte[] readBytes(DataInput in) throws IOException {
    int length = in.readInt();
    if (length < 0 || length > MAX_BYTES) {
      throw new IOException("a message part may have " + MAX_BYTES + " bytes but claims " + length);
    }
    var bytes = new byte[length];
    in.readFully(bytes);
    return bytes;
  }

  static void writeBundle(DataOutput out, MimeBundle bundle) throws IOException {
    long chars = bundle.data().values().stream().mapToLong(String::length).sum();
    if (chars > MAX_SHOWN_CHARS) {
      throw new BraidException(
          String.format(
              Locale.ROOT,
              "what a cell returns or shows must have at most %,d characters but has %,d; show a"
                  + " part of it, or write it to a file",
              MAX_SHOWN_CHARS,
              chars));
    }
    writeTexts(out, bundle.data());
  }

  static MimeBundle readBundle(DataInput in) throws IOException {
    return new MimeBundle(readTexts(in));
  }

  private static void writeTexts(DataOutput out, Map<?, ?> texts) throws IOException {
    out.writeInt(texts.size());
    for (var entry : texts.entrySet()) {
      writeText(out, (String) entry.getKey());
      writeText(out, (String) entry.getValue());
    }
  }

  private static Map<String, String> readTexts(DataInput in) throws IOException {
    var texts = new LinkedHashMap<String, String>();
    for (int left = in.readInt(); left > 0; left--) {
      texts.put(readText(in), readText(in));
    }
    return texts;
  }
}
