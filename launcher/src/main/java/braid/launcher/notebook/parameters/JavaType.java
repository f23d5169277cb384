package braid.launcher.notebook.parameters;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Type of a parameter, which checks given values and writes them as Java literals. Values are
/// those of [Yaml]: Boolean, Integer, Long, BigInteger, Double, OutOfRange, String, List, Map,
/// null.
sealed interface JavaType {
  /// Returns the type as Java source.
  String source();

  /// Returns whether `literal` can write the value. The number 4.0 is no int, and "4" is no number.
  boolean accepts(@Nullable Object value);

  /// Returns the value as a Java expression.
  String literal(@Nullable Object value);

  /// Returns the value of `-p NAME=text` for this type.
  default @Nullable Object parse(String text) {
    return Yaml.infer(text);
  }

  /// Returns an example for messages.
  String example();

  /// A type with literals of its own. Boxed, it may be null.
  record Plain(Kind kind, boolean boxed) implements JavaType {
    enum Kind {
      INT("int", "Integer", "4"),
      LONG("long", "Long", "4"),
      FLOAT("float", "Float", "0.5"),
      DOUBLE("double", "Double", "0.5"),
      BOOLEAN("boolean", "Boolean", "true"),
      STRING("String", "String", "text");

      private final String primitive;
      private final String box;
      private final String example;

      Kind(String primitive, String box, String example) {
        this.primitive = primitive;
        this.box = box;
        this.example = example;
      }

      static Stream<Plain> all() {
        return Arrays.stream(values())
            .flatMap(
                kind ->
                    kind == STRING
                        ? Stream.of(new Plain(kind, true))
                        : Stream.of(new Plain(kind, false), new Plain(kind, true)));
      }
    }

    @Override
    public String source() {
      return boxed ? kind.box : kind.primitive;
    }

    @Override
    public String example() {
      return kind.example;
    }

    @Override
    public @Nullable Object parse(String text) {
      return kind == Kind.STRING ? text : Yaml.infer(text);
    }

    @Override
    public boolean accepts(@Nullable Object value) {
      if (value == null) {
        return boxed;
      }
      return switch (kind) {
        case INT -> value instanceof Integer;
        case LONG -> value instanceof Integer || value instanceof Long;
        case FLOAT -> isFloating(value) && isInFloat(((Number) value).doubleValue());
        case DOUBLE -> isFloating(value);
        case BOOLEAN -> value instanceof Boolean;
        case STRING -> value instanceof String;
      };
    }

    private static boolean isFloating(Object value) {
      return value instanceof Integer || value instanceof Long || value instanceof Double;
    }

    /// Refuses numbers that become infinite or zero as a float, like Java's own literals.
    private static boolean isInFloat(double value) {
      return Double.isInfinite(value) == Float.isInfinite((float) value)
          && (value == 0) == ((float) value == 0);
    }

    /// Returns the range of floating-point numbers for messages; empty for other types.
    String range(@Nullable Object value) {
      boolean number = value instanceof Number || value instanceof Yaml.OutOfRange;
      return !number
          ? ""
          : switch (kind) {
            case FLOAT -> " (%s to %s)".formatted(Float.MIN_VALUE, Float.MAX_VALUE);
            case DOUBLE -> " (%s to %s)".formatted(Double.MIN_VALUE, Double.MAX_VALUE);
            case INT, LONG, BOOLEAN, STRING -> "";
          };
    }

    @Override
    public String literal(@Nullable Object value) {
      if (value == null) {
        return "null";
      }
      return switch (kind) {
        case INT, BOOLEAN -> value.toString();
        case LONG -> value + "L";
        case FLOAT -> floating(((Number) value).doubleValue(), "Float", v -> (float) v + "f");
        case DOUBLE -> floating(((Number) value).doubleValue(), "Double", v -> "" + v);
        case STRING -> quoted((String) value);
      };
    }

    private interface Finite {
      String text(double value);
    }

    private static String floating(double value, String box, Finite finite) {
      if (Double.isNaN(value)) {
        return box + ".NaN";
      }
      if (Double.isInfinite(value)) {
        return box + (value > 0 ? ".POSITIVE_INFINITY" : ".NEGATIVE_INFINITY");
      }
      return finite.text(value);
    }

    private static String quoted(String text) {
      var java = new StringBuilder("\"");
      for (int i = 0; i < text.length(); i++) {
        char c = text.charAt(i);
        switch (c) {
          case '"' -> java.append("\\\"");
          case '\\' -> java.append("\\\\");
          case '\n' -> java.append("\\n");
          case '\r' -> java.append("\\r");
          case '\t' -> java.append("\\t");
          default -> {
            if (Character.isISOControl(c) || Character.isSurrogate(c) || c == '\u2028') {
              java.append("\\u%04x".formatted((int) c));
            } else {
              java.append(c);
            }
          }
        }
      }
      return java.append('"').toString();
    }
  }

  /// A type of several elements, given as a YAML list or as values separated by commas.
  sealed interface Elements extends JavaType {
    JavaType element();

    @Override
    default String example() {
      return element() instanceof Plain(var kind, _) && kind == Plain.Kind.INT
          ? "1,2,4"
          : element().example() + "," + element().example();
    }

    @Override
    default @Nullable Object parse(String text) {
      if (text.strip().startsWith("[") || text.strip().equals("null")) {
        return Yaml.infer(text);
      }
      if (text.isBlank()) {
        return List.of();
      }
      return Arrays.stream(text.split(",", -1)).map(String::strip).map(element()::parse).toList();
    }

    @Override
    default boolean accepts(@Nullable Object value) {
      return value == null
          || (value instanceof List<?> list && list.stream().allMatch(element()::accepts));
    }

    default String joined(List<?> values) {
      return values.stream().map(element()::literal).collect(Collectors.joining(", "));
    }
  }

  record ArrayOf(JavaType element) implements Elements {
    @Override
    public String source() {
      return element.source() + "[]";
    }

    @Override
    public String literal(@Nullable Object value) {
      return value instanceof List<?> list ? "new " + source() + " {" + joined(list) + "}" : "null";
    }
  }

  /// `List<…>`, written as `List.of` unless it contains null.
  record ListOf(JavaType element) implements Elements {
    @Override
    public String source() {
      return "List<" + element.source() + ">";
    }

    @Override
    public String literal(@Nullable Object value) {
      if (!(value instanceof List<?> list)) {
        return "null";
      }
      if (list.stream().allMatch(Objects::nonNull)) {
        return "java.util.List.of(" + joined(list) + ")";
      }
      // asList would take one null for a null array
      return list.size() == 1
          ? "java.util.Collections.singletonList(null)"
          : "java.util.Arrays.asList(" + joined(list) + ")";
    }
  }

  /// `Map<String, …>`, written sorted by key: the order of `Map.of` differs between JVMs, and ranks
  /// that iterate in different orders would wait for each other forever.
  record MapOf(JavaType value) implements JavaType {
    @Override
    public String source() {
      return "Map<String, " + value.source() + ">";
    }

    @Override
    public String example() {
      return "{a: " + value.example() + "}";
    }

    @Override
    public boolean accepts(@Nullable Object given) {
      return given == null
          || (given instanceof Map<?, ?> map && map.entrySet().stream().allMatch(this::accepts));
    }

    private boolean accepts(Map.Entry<?, ?> entry) {
      return entry.getKey() instanceof String && value.accepts(entry.getValue());
    }

    @Override
    public String literal(@Nullable Object given) {
      if (!(given instanceof Map<?, ?> map)) {
        return "null";
      }
      var sorted = new TreeMap<String, @Nullable Object>();
      map.forEach((key, item) -> sorted.put((String) key, item));
      if (sorted.containsValue(null)) {
        return withNulls(sorted);
      }
      var entries =
          sorted.entrySet().stream()
              .map(
                  e ->
                      "java.util.Map.entry("
                          + new Plain(Plain.Kind.STRING, true).literal(e.getKey())
                          + ", "
                          + value.literal(e.getValue())
                          + ")")
              .collect(Collectors.joining(", "));
      return "new java.util.TreeMap<>(java.util.Map.ofEntries(" + entries + "))";
    }

    /// The only Java expression for a map with nulls is a class that fills itself.
    private String withNulls(TreeMap<String, @Nullable Object> sorted) {
      var key = new Plain(Plain.Kind.STRING, true);
      var puts = new StringBuilder();
      sorted.forEach(
          (name, item) ->
              puts.append("put(")
                  .append(key.literal(name))
                  .append(", ")
                  .append(value.literal(item))
                  .append("); "));
      return "new java.util.TreeMap<String, %s>() {{ %s}}".formatted(value.source(), puts);
    }
  }

  /// The type of the value itself, for an undeclared parameter, an `Object`, or an element of
  /// either.
  record Anything(String source) implements JavaType {
    @Override
    public String example() {
      return "4";
    }

    @Override
    public boolean accepts(@Nullable Object value) {
      return value == null || of(value).accepts(value);
    }

    @Override
    public String literal(@Nullable Object value) {
      return value == null ? "null" : of(value).literal(value);
    }

    private static JavaType of(Object value) {
      return switch (value) {
        case List<?> list -> new ListOf(new Anything("Object"));
        case Map<?, ?> map -> new MapOf(new Anything("Object"));
        default ->
            Plain.Kind.all()
                .filter(type -> type.kind() != Plain.Kind.FLOAT && type.accepts(value))
                .findFirst()
                .<JavaType>map(type -> type)
                .orElse(new Unsettable(value.getClass().getSimpleName()));
      };
    }
  }

  /// A type without values that can be given from outside.
  record Unsettable(String source) implements JavaType {
    static final String SETTABLE =
        "int, long, float, double, boolean, String, List, Map and arrays of them";

    @Override
    public String example() {
      return "";
    }

    @Override
    public boolean accepts(@Nullable Object value) {
      return false;
    }

    @Override
    public String literal(@Nullable Object value) {
      throw new IllegalStateException("a " + source + " has no literal");
    }
  }
}
