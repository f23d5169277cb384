package braid.launcher.notebook.parameters;

import braid.launcher.Nearest;
import braid.model.BraidException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The injected cell that sets a notebook's parameters: one declaration each, of the type that the
/// notebook declares. `values` are the typed values.
public record Injection(String source, Map<String, @Nullable Object> values) {
  /// @param declaring the source of the cell tagged `parameters`; null if there is none: then any
  ///   name may be given, and its type is that of its value
  /// @param notebook its name in messages
  public static Injection of(Parameters parameters, @Nullable String declaring, String notebook) {
    Map<String, JavaType> declared = declaring == null ? Map.of() : Declarations.of(declaring);
    var values = new LinkedHashMap<String, @Nullable Object>();
    var lines = new ArrayList<String>();
    lines.add("// Parameters");
    parameters
        .values()
        .forEach(
            (name, given) -> {
              JavaType type = declared.get(name);
              if (type == null && declaring != null) {
                throw unknown(name, given, declared, notebook);
              }
              var value = value(name, given, type);
              values.put(name, value);
              lines.add(declaration(name, type, value));
            });
    return new Injection(String.join("\n", lines), values);
  }

  private static String declaration(
      String name, @Nullable JavaType declared, @Nullable Object value) {
    var type =
        declared != null ? declared : new JavaType.Anything(value == null ? "Object" : "var");
    return type.source() + " " + name + " = " + type.literal(value) + ";";
  }

  private static @Nullable Object value(
      String name, Parameters.Given given, @Nullable JavaType declared) {
    var type = declared != null ? declared : new JavaType.Anything("var");
    if (type instanceof JavaType.Unsettable) {
      throw new BraidException(
          "parameter %s must be of a type that can be given (%s) but is declared %s; declare one of those"
              .formatted(name, JavaType.Unsettable.SETTABLE, type.source()));
    }
    Object value = given.value();
    if (given.flag() == Parameters.Flag.TYPED && value instanceof String text) {
      value = parse(name, type, text);
    }
    if (!type.accepts(value)) {
      throw mismatch(name, given, type, value);
    }
    return value;
  }

  private static @Nullable Object parse(String name, JavaType type, String text) {
    try {
      return type.parse(text);
    } catch (BraidException e) {
      throw new BraidException("parameter " + name + ": " + e.getMessage(), e);
    }
  }

  private static BraidException mismatch(
      String name, Parameters.Given given, JavaType type, @Nullable Object value) {
    var range = type instanceof JavaType.Plain plain ? plain.range(value) : "";
    var rule =
        type instanceof JavaType.Anything
            ? "must be " + JavaType.Unsettable.SETTABLE
            : "is declared " + type.source() + range;
    var remedy =
        given.flag() == Parameters.Flag.FILE || given.flag() == Parameters.Flag.YAML
            ? type instanceof JavaType.Plain(var kind, var boxed)
                    && kind == JavaType.Plain.Kind.STRING
                ? "quote it"
                : "try " + name + ": " + yamlExample(type)
            : "try -p " + name + "=" + type.example();
    return new BraidException(
        "parameter %s %s but was %s (%s); %s"
            .formatted(name, rule, Yaml.shown(given.value()), given.from(), remedy));
  }

  private static String yamlExample(JavaType type) {
    boolean list = type instanceof JavaType.ArrayOf || type instanceof JavaType.ListOf;
    return list ? "[" + type.example().replace(",", ", ") + "]" : type.example();
  }

  private static BraidException unknown(
      String name, Parameters.Given given, Map<String, JavaType> declared, String notebook) {
    var known =
        declared.isEmpty()
            ? "it declares none"
            : "it declares " + String.join(", ", declared.keySet());
    var remedy =
        declared.isEmpty()
            ? "declare it there"
            : "did you mean " + Nearest.to(name, declared.keySet()) + "?";
    return new BraidException(
        "parameter %s (%s) must be declared in the cell of %s tagged parameters, but %s; %s"
            .formatted(name, given.from(), notebook, known, remedy));
  }
}
