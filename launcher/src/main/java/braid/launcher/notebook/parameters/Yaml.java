package braid.launcher.notebook.parameters;

import braid.model.BraidException;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.yaml.snakeyaml.DumperOptions;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.constructor.SafeConstructor;
import org.yaml.snakeyaml.error.MarkedYAMLException;
import org.yaml.snakeyaml.error.YAMLException;
import org.yaml.snakeyaml.nodes.Node;
import org.yaml.snakeyaml.nodes.ScalarNode;
import org.yaml.snakeyaml.nodes.Tag;
import org.yaml.snakeyaml.representer.Representer;
import org.yaml.snakeyaml.resolver.Resolver;

/// Reads plain YAML data, with the plain values of YAML 1.2: `no`, `on` and `12:30` are text,
/// `1e-3` is a number. A repeated key is an error.
final class Yaml {
  private static final Pattern BOOLEAN = Pattern.compile("true|True|TRUE|false|False|FALSE");
  private static final Pattern NULL = Pattern.compile("~|null|Null|NULL|None| ");
  private static final Pattern INTEGER = Pattern.compile("[-+]?(0|[1-9][0-9]*)");
  private static final Pattern FLOAT =
      Pattern.compile(
          "[-+]?([0-9]+\\.[0-9]*|\\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?"
              + "|[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN)");

  /// A nonzero digit before the exponent.
  private static final Pattern NOT_ZERO = Pattern.compile("^[^eE]*[1-9]");

  private Yaml() {}

  private static final class PlainValues extends Resolver {
    @Override
    protected void addImplicitResolvers() {
      addImplicitResolver(Tag.BOOL, BOOLEAN, "tTfF");
      addImplicitResolver(Tag.INT, INTEGER, "-+0123456789");
      addImplicitResolver(Tag.FLOAT, FLOAT, "-+.0123456789");
      addImplicitResolver(Tag.NULL, NULL, "~nN\0");
      addImplicitResolver(Tag.NULL, Pattern.compile("^$"), null);
    }
  }

  /// A number that becomes infinite or zero as a double.
  record OutOfRange(String text) {
    @Override
    public String toString() {
      return text;
    }
  }

  private static final class PlainNumbers extends SafeConstructor {
    private PlainNumbers(LoaderOptions options) {
      super(options);
      yamlConstructors.put(
          Tag.FLOAT,
          new ConstructYamlFloat() {
            @Override
            public Object construct(Node node) {
              var value = super.construct(node);
              var text = ((ScalarNode) node).getValue();
              boolean outside =
                  value instanceof Double number
                      && ((number.isInfinite() && !text.toLowerCase(Locale.ROOT).contains("inf"))
                          || (number == 0 && NOT_ZERO.matcher(text).find()));
              return outside ? new OutOfRange(text) : value;
            }
          });
    }
  }

  private static @Nullable Object load(String text) {
    var loading = new LoaderOptions();
    loading.setAllowDuplicateKeys(false);
    loading.setAllowRecursiveKeys(false);
    var dumping = new DumperOptions();
    return new org.yaml.snakeyaml.Yaml(
            new PlainNumbers(loading),
            new Representer(dumping),
            dumping,
            loading,
            new PlainValues())
        .load(text);
  }

  /// Returns values by name, in the order of the text. `from` is its name in messages.
  static Map<String, @Nullable Object> mapping(String text, String from) {
    Object loaded;
    try {
      loaded = load(text);
    } catch (YAMLException e) {
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
    if (value.isEmpty()) {
      return text;
    }
    boolean collection = value.startsWith("[") || value.startsWith("{");
    boolean plain =
        BOOLEAN.matcher(value).matches()
            || NULL.matcher(value).matches()
            || INTEGER.matcher(value).matches()
            || FLOAT.matcher(value).matches();
    if (!collection && !plain) {
      return text;
    }
    try {
      return load(value);
    } catch (YAMLException e) {
      throw new BraidException(
          "value must be a list or map as YAML has it but was %s (%s); try [1, 2, 4]"
              .formatted(shown(text), reason(e)),
          e);
    }
  }

  private static String reason(YAMLException e) {
    if (e instanceof MarkedYAMLException marked && marked.getProblemMark() != null) {
      return "line %d column %d: %s"
          .formatted(
              marked.getProblemMark().getLine() + 1,
              marked.getProblemMark().getColumn() + 1,
              marked.getProblem());
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
