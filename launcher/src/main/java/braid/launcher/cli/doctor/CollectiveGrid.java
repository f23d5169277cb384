package braid.launcher.cli.doctor;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.function.Function;
import java.util.stream.Collectors;

/// Collectives outside pipelines: a line per collective, a column per transport that the backend
/// supports. The memory of a "yes", and the engine that moves the bytes, are explained once below.
final class CollectiveGrid {
  private final List<Ability> all;
  private final Footnotes notes;

  /// Meaning of each mark of a "yes".
  private final SequencedMap<String, String> marks = new LinkedHashMap<>();

  CollectiveGrid(List<Ability> all, Footnotes notes) {
    this.all = all;
    this.notes = notes;
    var meanings =
        cells().values().stream()
            .flatMap(ways -> ways.values().stream())
            .filter(CollectiveGrid::any)
            .map(CollectiveGrid::memories)
            .collect(Collectors.toCollection(LinkedHashSet::new));
    int number = 0;
    for (var meaning : meanings) {
      marks.put(
          meaning,
          meanings.size() == 1
              ? AbilityTable.YES
              : AbilityTable.YES + "-" + (char) ('a' + number++));
    }
  }

  List<String> lines() {
    var ways = ways(true);
    var table = new ArrayList<List<String>>();
    var head = new ArrayList<>(List.of(""));
    head.addAll(ways);
    table.add(head);
    cells()
        .forEach(
            (task, ofTask) -> {
              var row = new ArrayList<>(List.of(task));
              ways.forEach(way -> row.add(cell(ofTask.getOrDefault(way, List.of()))));
              table.add(row);
            });
    var lines = new ArrayList<>(Footnotes.grid(table));
    marks.forEach((meaning, mark) -> lines.addAll(notes.wrapped(mark + "  ", meaning)));
    engines()
        .forEach((engine, of) -> lines.addAll(notes.wrapped(String.join(", ", of) + "  ", engine)));
    missing()
        .forEach(
            (why, of) ->
                lines.addAll(notes.wrapped("", "not by %s: %s".formatted(listed(of), why))));
    return lines;
  }

  private String cell(List<Ability> abilities) {
    boolean any = any(abilities);
    var text =
        new StringBuilder(
            any ? marks.getOrDefault(memories(abilities), AbilityTable.YES) : AbilityTable.HOLE);
    abilities.stream()
        .filter(ability -> ability.supported() == any && !ability.reason().isEmpty())
        .map(Ability::reason)
        .distinct()
        .forEach(note -> text.append(' ').append(notes.number(note)));
    return text.toString();
  }

  /// Describes the supported kinds of memory, and why others are not supported.
  private static String memories(List<Ability> abilities) {
    var supported = new LinkedHashSet<String>();
    var holes = new LinkedHashMap<String, SequencedSet<String>>();
    for (var ability : abilities) {
      if (ability.supported()) {
        supported.add(ability.memory());
      } else {
        holes.computeIfAbsent(ability.reason(), _ -> new LinkedHashSet<>()).add(ability.memory());
      }
    }
    var text = new StringBuilder("in %s memory".formatted(listed(supported)));
    holes.forEach((why, in) -> text.append("; not in %s: %s".formatted(listed(in), why)));
    return text.toString();
  }

  /// Returns the engines and their users: a collective if all its transports have the same engine,
  /// else the transports.
  private SequencedMap<String, SequencedSet<String>> engines() {
    var engines = new LinkedHashMap<String, SequencedSet<String>>();
    var ofAllWays = new LinkedHashMap<String, String>();
    cells()
        .forEach(
            (task, ways) -> {
              var engine =
                  ways.values().stream()
                      .flatMap(List::stream)
                      .filter(Ability::supported)
                      .map(Ability::engine)
                      .distinct()
                      .toList();
              long supported = ways.values().stream().filter(CollectiveGrid::any).count();
              if (engine.size() == 1 && supported > 1) {
                ofAllWays.put(task, engine.getFirst());
              }
            });
    all.stream()
        .filter(ability -> ability.supported() && !ofAllWays.containsKey(ability.task()))
        .forEach(
            ability ->
                engines
                    .computeIfAbsent(ability.engine(), _ -> new LinkedHashSet<>())
                    .add(ability.transport()));
    ofAllWays.forEach(
        (task, engine) -> engines.computeIfAbsent(engine, _ -> new LinkedHashSet<>()).add(task));
    return engines;
  }

  /// Returns the transports without any collective, by reason.
  private SequencedMap<String, SequencedSet<String>> missing() {
    var missing = new LinkedHashMap<String, SequencedSet<String>>();
    var ways = ways(false);
    all.stream()
        .filter(ability -> ways.contains(ability.transport()))
        .forEach(
            ability ->
                missing
                    .computeIfAbsent(ability.reason(), _ -> new LinkedHashSet<>())
                    .add(ability.transport()));
    return missing;
  }

  /// Returns the transports with at least one collective, or those without.
  private List<String> ways(boolean supported) {
    return all.stream()
        .collect(Collectors.groupingBy(Ability::transport, LinkedHashMap::new, Collectors.toList()))
        .entrySet()
        .stream()
        .filter(way -> any(way.getValue()) == supported)
        .map(way -> way.getKey())
        .toList();
  }

  private static boolean any(List<Ability> abilities) {
    return abilities.stream().anyMatch(Ability::supported);
  }

  private static String listed(SequencedSet<String> names) {
    return String.join(", ", names);
  }

  /// Groups abilities by collective and transport.
  private SequencedMap<String, SequencedMap<String, List<Ability>>> cells() {
    Function<Ability, String> way = Ability::transport;
    return all.stream()
        .collect(
            Collectors.groupingBy(
                Ability::task,
                LinkedHashMap::new,
                Collectors.groupingBy(way, LinkedHashMap::new, Collectors.toList())));
  }
}
