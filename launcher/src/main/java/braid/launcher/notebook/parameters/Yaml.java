package braid.launcher.notebook.parameters;

import braid.model.BraidException;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.ConstructNode;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.nodes.ScalarNode;
import org.snakeyaml.engine.v2.nodes.Tag;
import org.snakeyaml.engine.v2.schema.CoreSchema;

/// Reads YAML 1.2 by its core schema: `no`, `on` and `12:30` are text, `1e-3` is a number. A
/// repeated key is an error.
final class Yaml {
  private static final LoadSettings SETTINGS =
      LoadSettings.builder().setSchema(new ExactNumbers()).build();

  /// A nonzero digit before the exponent.
  private static final Pattern NOT_ZERO = Pattern.compile("^[^eE]*[1-9]");

  private Yaml() {}

  /// A number that becomes infinite or zero as a double.
  record OutOfRange(String text) {
    @Override
    public String toString() {
      return text;
    }
  }

  private static final class ExactNumbers extends CoreSchema {
    @Override
    public Map<Tag, ConstructNode> getSchemaTagConstructors() {
      var constructors = super.getSchemaTagConstructors();
      constructors.computeIfPresent(Tag.FLOAT, (_, usual) -> node -> inRange(node, usual));
      return constructors;
    }

    private static Object inRange(Node node, ConstructNode usual) {
      var value = usual.construct(node);
      var text = ((ScalarNode) node).getValue();
      boolean outside =
          value instanceof Double number
              && ((number.isInfinite() && !text.toLowerCase(Locale.ROOT).contains("inf"))
                  || (number == 0 && NOT_ZERO.matcher(text).find()));
      return outside ? new OutOfRange(text) : value;
    }
  }

  private static @Nullable Object load(String text) {
    return new Load(SETTINGS).loadFromString(text);
  }

  /// Returns values by name, in the order of the text. `from` is its name in messages.
  static Map<String, @Nullable Object> mapping(String text, String from) {
    Object loaded;
    try {
      loaded = load(text);
    } catch (YamlEngineException e) {
      throw new BraidException(
          from + " must be YAML but is not: " + reason(e) + "; write NAME: VALUE lines", e);
    }
    var mapping = new LinkedHashMap<String, @Nullable Object>();
    if (loaded instanceof Map<?, ?> map) {
      map.forEach((name, value) -> mapping.put(String.valueOf(name), value));
    } else if (loaded != null) {
      throw new BraidException(
          from + " must map names to values but holds " + shown(loaded) + "; write NAME: VALUE");
    }
    return mapping;
  }

  /// Returns the value of a text: a number, true, false, null, `[…]`, `{…}`, or else the text
  /// itself.
  static @Nullable Object infer(String text) {
    var value = text.strip();
    boolean collection = value.startsWith("[") || value.startsWith("{");
    boolean plain = !SETTINGS.getSchema().getScalarResolver().resolve(value, true).equals(Tag.STR);
    if (value.isEmpty() || !(collection || plain)) {
      return text;
    }
    try {
      return load(value);
    } catch (YamlEngineException e) {
      throw new BraidException(
          "value must be a list or map as YAML has it but was %s (%s); try [1, 2, 4]"
              .formatted(shown(text), reason(e)),
          e);
    }
  }

  private static String reason(YamlEngineException e) {
    if (e instanceof MarkedYamlEngineException marked && marked.getProblemMark().isPresent()) {
      var place = marked.getProblemMark().get();
      return "line %d column %d: %s"
          .formatted(place.getLine() + 1, place.getColumn() + 1, marked.getProblem());
    }
    return String.valueOf(e.getMessage()).lines().findFirst().orElse("it cannot be read");
  }

  /// Returns a value as messages show it.
  static String shown(@Nullable Object value) {
    var text = value instanceof String string ? '"' + string + '"' : String.valueOf(value);
    text = text.replace("\n", "\\n").replace("\r", "\\r");
    return text.length() <= 60 ? text : text.substring(0, 57) + "...";
  }
}
