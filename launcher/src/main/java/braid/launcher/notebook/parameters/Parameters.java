package braid.launcher.notebook.parameters;

import braid.launcher.InputFile;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import javax.lang.model.SourceVersion;
import org.jspecify.annotations.Nullable;

/// Parameters given by the user, by papermill's conventions but stricter: undeclared names and
/// values of another type than declared are errors.
public final class Parameters {
  /// Option that gave a value. Of several, the later constant wins.
  public enum Flag {
    FILE("-f"),
    YAML("-y"),
    TYPED("-p"),
    RAW("-r");

    private final String option;

    Flag(String option) {
      this.option = option;
    }
  }

  /// A value and its option as messages name it. For `-p`, the value is the text.
  record Given(Flag flag, String from, @Nullable Object value) {}

  private static final int MOST_MEBIBYTES = 16;

  private final Map<String, Given> given;

  private Parameters(Map<String, Given> given) {
    this.given = given;
  }

  public static Builder given() {
    return new Builder();
  }

  public boolean isEmpty() {
    return given.isEmpty();
  }

  public Set<String> names() {
    return given.keySet();
  }

  /// Returns the parameters of these names.
  public Parameters only(Set<String> names) {
    var kept = new LinkedHashMap<>(given);
    kept.keySet().retainAll(names);
    return new Parameters(Collections.unmodifiableMap(kept));
  }

  /// Collects `-f`, `-y`, `-p` and `-r` in any order.
  public static final class Builder {
    private final Map<Flag, Map<String, Given>> byFlag = new EnumMap<>(Flag.class);

    private Builder() {}

    /// `-f FILE`: a YAML or JSON file of names and values.
    public Builder file(Path file) {
      String text;
      try {
        text = InputFile.read(file, MOST_MEBIBYTES);
      } catch (IOException e) {
        var reason = Files.exists(file) ? InputFile.reason(e) : "does not exist";
        throw new BraidException(
            "-f must name a YAML file but " + file + " " + reason + "; check the path", e);
      }
      return mapping(Flag.FILE, text, file.toString());
    }

    /// `-y TEXT`: the same, on the command line.
    public Builder yaml(String text) {
      return mapping(Flag.YAML, text, "-y");
    }

    private Builder mapping(Flag flag, String text, String from) {
      Yaml.mapping(text, from).forEach((name, value) -> put(flag, name, from, value));
      return this;
    }

    /// `-p NAME=VALUE`: the value is of the type that the notebook declares.
    public Builder typed(String assignment) {
      return assignment(Flag.TYPED, assignment);
    }

    /// `-r NAME=VALUE`: the value is always text.
    public Builder raw(String assignment) {
      return assignment(Flag.RAW, assignment);
    }

    private Builder assignment(Flag flag, String assignment) {
      int equals = assignment.indexOf('=');
      if (equals < 1) {
        throw new BraidException(
            "%s must be NAME=VALUE but was %s; try %s %s=VALUE"
                .formatted(
                    flag.option,
                    Yaml.shown(assignment),
                    flag.option,
                    SourceVersion.isIdentifier(assignment) ? assignment : "NAME"));
      }
      return put(
          flag, assignment.substring(0, equals), flag.option, assignment.substring(equals + 1));
    }

    private Builder put(Flag flag, String name, String from, @Nullable Object value) {
      if (!SourceVersion.isName(name) || name.contains(".")) {
        throw new BraidException(
            "parameter must be a Java name but was %s (%s); use letters, digits and _"
                .formatted(Yaml.shown(name), from));
      }
      var values = byFlag.computeIfAbsent(flag, f -> new LinkedHashMap<>());
      var before = values.put(name, new Given(flag, from, value));
      if (before != null && flag != Flag.FILE) {
        throw new BraidException(
            "parameter %s must be given once by %s but was given as %s and as %s; drop one"
                .formatted(name, from, Yaml.shown(before.value()), Yaml.shown(value)));
      }
      return this;
    }

    public Parameters build() {
      var merged = new LinkedHashMap<String, Given>();
      byFlag.values().forEach(merged::putAll);
      return new Parameters(Collections.unmodifiableMap(merged));
    }
  }

  Map<String, Given> values() {
    return given;
  }
}
