package braid.launcher.experiment;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.SequencedMap;
import java.util.Set;

/// Differences between two runs that may change their times; not their dates and results. Load
/// averages are listed if they differ by more than [#LOAD_PER_CORE], since they never agree.
public record Differences(List<Difference> all) {
  /// Shown for a value that one of the two lacks.
  public static final String NONE = "none";

  private static final List<String> SECTIONS =
      List.of(
          "notebook",
          "git",
          "parameters",
          "session",
          "braid",
          "java",
          "machine",
          "gpus",
          "libraries",
          "environment");

  /// Fields that always differ, repeat another field, or hold only paths and addresses.
  private static final Set<String> LEFT_OUT =
      Set.of(
          "machine.load",
          "session.why",
          Manifest.LAUNCHER_OPTIONS,
          "gpus.words",
          "java.home",
          "notebook.path",
          "notebook.output");

  /// Difference of load averages, per core, from which other processes matter: half a process.
  private static final double LOAD_PER_CORE = 0.5;

  private static final int SHOWN = 20;
  private static final int WIDEST = 44;

  /// One difference, with the value in each run.
  public record Difference(String what, String first, String second) {}

  public Differences {
    all = List.copyOf(all);
  }

  public static Differences between(Manifest first, Manifest second) {
    var a = facts(first);
    var b = facts(second);
    var names = new LinkedHashSet<>(a.keySet());
    names.addAll(b.keySet());
    var all = new ArrayList<Difference>();
    for (var name : names) {
      var was = a.getOrDefault(name, NONE);
      var is = b.getOrDefault(name, NONE);
      if (!was.equals(is)) {
        all.add(new Difference(name, was, is));
      }
    }
    hosts(first, second).ifPresent(all::add);
    load("load at the start", first.load(), second.load(), cores(first, second))
        .ifPresent(all::add);
    load("load after measuring", first.loadMeasured(), second.loadMeasured(), cores(first, second))
        .ifPresent(all::add);
    return new Differences(all);
  }

  /// Returns the difference of the hosts of two runs. A run that has not begun has none yet.
  private static Optional<Difference> hosts(Manifest first, Manifest second) {
    var was = first.text(Manifest.HOSTS);
    var is = second.text(Manifest.HOSTS);
    return was.isPresent() && is.isPresent() && !was.equals(is)
        ? Optional.of(new Difference(Manifest.HOSTS, was.get(), is.get()))
        : Optional.empty();
  }

  /// Returns the difference of a field, such as `session.link`.
  public Optional<Difference> of(String field) {
    return all.stream().filter(each -> each.what().equals(field)).findFirst();
  }

  /// Returns true if two runs differ in nothing but their loads, times and results: code, notebook,
  /// parameters, machine and environment.
  public static boolean areOfOneState(Manifest first, Manifest second) {
    return facts(first).equals(facts(second)) && hosts(first, second).isEmpty();
  }

  private static double cores(Manifest first, Manifest second) {
    return Math.min(first.cores(), second.cores());
  }

  /// Returns the difference of two load averages if it is notable.
  static Optional<Difference> load(
      String what, OptionalDouble first, OptionalDouble second, double cores) {
    if (first.isEmpty()
        || second.isEmpty()
        || Math.abs(first.getAsDouble() - second.getAsDouble()) <= LOAD_PER_CORE * cores) {
      return Optional.empty();
    }
    return Optional.of(
        new Difference(what, loadText(first.getAsDouble()), loadText(second.getAsDouble())));
  }

  private static String loadText(double load) {
    return String.format(Locale.ROOT, "%.1f", load);
  }

  private static SequencedMap<String, String> facts(Manifest manifest) {
    var facts = new LinkedHashMap<String, String>();
    for (var section : SECTIONS) {
      manifest.at(section).ifPresent(json -> put(section, json, facts));
    }
    if (manifest.json().get("jars") instanceof JsonArray jars) {
      for (var jar : jars) {
        jar(jar.getAsJsonObject(), facts);
      }
    }
    return facts;
  }

  /// Jars by name, whatever their folder; a folder of classes has no digest to compare.
  private static void jar(JsonObject jar, SequencedMap<String, String> facts) {
    if (jar.has("crc32")) {
      var name = String.valueOf(Path.of(jar.get("path").getAsString()).getFileName());
      facts.put(
          "jar " + name,
          "%s bytes, crc %s"
              .formatted(jar.get("bytes").getAsString(), jar.get("crc32").getAsString()));
    }
  }

  private static void put(String path, JsonElement json, SequencedMap<String, String> facts) {
    if (LEFT_OUT.contains(path)) {
      return;
    }
    switch (json) {
      case JsonObject object when path.startsWith("parameters.") ->
          facts.put(path, Objects.requireNonNull(object.get("value")).getAsString());
      case JsonObject object ->
          object.asMap().forEach((name, value) -> put(path + "." + name, value, facts));
      case JsonArray array -> {
        for (int i = 0; i < array.size() && array.get(i) instanceof JsonObject; i++) {
          put(path + "." + i, array.get(i), facts);
        }
        if (array.isEmpty() || !(array.get(0) instanceof JsonObject)) {
          facts.put(path, array.toString());
        }
      }
      case JsonPrimitive value -> facts.put(path, value.getAsString());
      default -> {} // null says nothing
    }
  }

  /// Returns a short table; long values are cut.
  ///
  /// @param first title of the first column of values
  public List<String> lines(String first, String second) {
    var rows = new ArrayList<Difference>();
    rows.add(new Difference("", first, second));
    all.stream().limit(SHOWN).forEach(rows::add);
    int what = rows.stream().mapToInt(row -> row.what().length()).max().orElse(0);
    int was = rows.stream().mapToInt(row -> cut(row.first()).length()).max().orElse(0);
    var lines = new ArrayList<String>();
    for (var row : rows) {
      lines.add(
          ("  %-" + what + "s  %-" + was + "s  %s")
              .formatted(row.what(), cut(row.first()), cut(row.second())));
    }
    if (all.size() > SHOWN) {
      lines.add("  and %d more".formatted(all.size() - SHOWN));
    }
    return lines;
  }

  private static String cut(String text) {
    return text.length() <= WIDEST ? text : text.substring(0, WIDEST - 1) + "…";
  }
}
