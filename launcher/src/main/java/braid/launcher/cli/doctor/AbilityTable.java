package braid.launcher.cli.doctor;

import braid.model.BackendKind;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// All combinations on one screen: grids of patterns and methods, of attention, and of collectives
/// by themselves and the ways that the backend has for them.
final class AbilityTable {
  /// @param reason why not; empty where it is supported
  private record Answer(boolean supported, String engine, String reason) {}

  private final BackendKind backend;
  private final List<Ability> overlaps;
  private final List<Ability> attentions;
  private final List<Ability> collectives;
  private final AbilityGrid grid;

  AbilityTable(
      int columns,
      BackendKind backend,
      List<Ability> overlaps,
      List<Ability> attentions,
      List<Ability> collectives) {
    this.grid = new AbilityGrid(columns);
    this.backend = backend;
    this.overlaps = overlaps;
    this.attentions = attentions;
    this.collectives = collectives;
  }

  List<String> lines() {
    var lines = new ArrayList<String>();
    lines.add("Overlapped patterns on the %s backend:".formatted(backend));
    for (var table : List.of(copied(overlaps), copied(attentions))) {
      if (!table.isEmpty()) {
        lines.addAll(grid.lines(table, Ability::way, AbilityTable::answers));
      }
    }
    if (!collectives.isEmpty()) {
      lines.add("Collectives:");
      lines.addAll(byTransport(copied(collectives), AbilityTable::memories));
    }
    var over = overLibraries();
    if (!over.isEmpty()) {
      lines.add("Over a library:");
      lines.addAll(byTransport(over, AbilityTable::methods));
      lines.addAll(holes(over));
    }
    var notes = grid.notes();
    if (!notes.isEmpty()) {
      lines.add("Notes:");
      lines.addAll(notes);
    }
    return lines;
  }

  private static List<Ability> copied(List<Ability> abilities) {
    return abilities.stream().filter(ability -> !isOverLibrary(ability)).toList();
  }

  /// Returns the abilities of libraries in what Braid's own copies can do.
  private List<Ability> overLibraries() {
    var all = Stream.of(overlaps, attentions, collectives).flatMap(List::stream).toList();
    var possible =
        copied(all).stream()
            .filter(Ability::supported)
            .map(ability -> List.of(ability.task(), ability.way()))
            .collect(Collectors.toSet());
    return all.stream()
        .filter(AbilityTable::isOverLibrary)
        .filter(ability -> possible.contains(List.of(ability.task(), ability.way())))
        .toList();
  }

  private static boolean isOverLibrary(Ability ability) {
    return Arrays.stream(Transport.values())
        .anyMatch(each -> each.isLibrary() && each.toString().equals(ability.transport()));
  }

  /// Returns one text for all transports and memory kinds with the same answer, supported ones
  /// first.
  private static List<String> answers(List<Ability> abilities) {
    record ByTransport(String transport, Answer answer) {}
    record ByMemory(SequencedSet<String> memories, Answer answer) {}
    var memories = new LinkedHashMap<ByTransport, SequencedSet<String>>();
    for (var ability : abilities) {
      var answer =
          new Answer(
              ability.supported(), ability.engine(), ability.supported() ? "" : ability.reason());
      memories
          .computeIfAbsent(new ByTransport(ability.transport(), answer), _ -> new LinkedHashSet<>())
          .add(ability.memory());
    }
    var transports = new LinkedHashMap<ByMemory, SequencedSet<String>>();
    memories.forEach(
        (key, kinds) ->
            transports
                .computeIfAbsent(new ByMemory(kinds, key.answer), _ -> new LinkedHashSet<>())
                .add(key.transport));
    return transports.entrySet().stream()
        .sorted((a, b) -> Boolean.compare(b.getKey().answer.supported, a.getKey().answer.supported))
        .map(
            e -> {
              var answer = e.getKey().answer;
              return "%sover %s in %s memory: %s"
                  .formatted(
                      answer.supported ? "" : "not ",
                      listed(e.getValue()),
                      listed(e.getKey().memories),
                      answer.supported ? answer.engine : answer.reason);
            })
        .toList();
  }

  /// Returns the lines of a table with a column per transport that supports anything, its engines,
  /// and why the others do not.
  private List<String> byTransport(
      List<Ability> abilities, Function<List<Ability>, List<String>> meaning) {
    var supported =
        abilities.stream()
            .filter(Ability::supported)
            .map(Ability::transport)
            .collect(Collectors.toCollection(LinkedHashSet::new));
    var present = abilities.stream().filter(a -> supported.contains(a.transport())).toList();
    var lines = new ArrayList<String>();
    if (!present.isEmpty()) {
      lines.addAll(grid.lines(present, Ability::transport, meaning));
      engines(present)
          .forEach((engine, of) -> lines.addAll(grid.wrapped(listed(of) + "  ", engine)));
    }
    var missing = new LinkedHashMap<String, SequencedSet<String>>();
    abilities.stream()
        .filter(ability -> !supported.contains(ability.transport()))
        .forEach(ability -> add(missing, ability.reason(), ability.transport()));
    missing.forEach(
        (why, of) -> lines.addAll(grid.wrapped("", "not by %s: %s".formatted(listed(of), why))));
    return lines;
  }

  /// Returns the methods of a cell that are supported.
  private static List<String> methods(List<Ability> abilities) {
    var ways = distinct(abilities.stream().filter(Ability::supported).toList(), Ability::way);
    return List.of(ways.contains(Ability.NO_WAY) ? "the collective by itself" : listed(ways));
  }

  /// Returns what is missing in cells in which something is supported, once for each reason:
  /// methods, or kinds of memory of a transport.
  private List<String> holes(List<Ability> abilities) {
    var methods = new LinkedHashMap<String, SequencedSet<String>>();
    var memories = new LinkedHashMap<String, SequencedSet<String>>();
    AbilityGrid.cells(abilities, Ability::transport).values().stream()
        .flatMap(ways -> ways.values().stream())
        .filter(AbilityGrid::any)
        .forEach(
            cell -> {
              var ways = distinct(cell.stream().filter(Ability::supported).toList(), Ability::way);
              for (var ability : cell) {
                if (!ability.supported() && ways.contains(ability.way())) {
                  add(
                      memories,
                      "%s: %s".formatted(ability.transport(), ability.reason()),
                      ability.memory());
                } else if (!ability.supported()) {
                  add(methods, ability.reason(), ability.way());
                }
              }
            });
    var lines = new ArrayList<String>();
    methods.forEach(
        (why, names) -> lines.addAll(grid.wrapped("", "not %s: %s".formatted(listed(names), why))));
    memories.forEach(
        (why, names) ->
            lines.addAll(grid.wrapped("", "not in %s memory by %s".formatted(listed(names), why))));
    return lines;
  }

  private static SequencedSet<String> distinct(
      List<Ability> abilities, Function<Ability, String> value) {
    return abilities.stream().map(value).collect(Collectors.toCollection(LinkedHashSet::new));
  }

  /// Returns the memory kinds that are supported, and for each other kind the reason why not.
  private static List<String> memories(List<Ability> abilities) {
    var present = new LinkedHashSet<String>();
    var holes = new LinkedHashMap<String, SequencedSet<String>>();
    for (var ability : abilities) {
      if (ability.supported()) {
        present.add(ability.memory());
      } else {
        add(holes, ability.reason(), ability.memory());
      }
    }
    var text = new StringBuilder("in %s memory".formatted(listed(present)));
    holes.forEach((why, in) -> text.append("; not in %s: %s".formatted(listed(in), why)));
    return List.of(text.toString());
  }

  /// Returns the engines that move the bytes, each with the ways that use it. If all ways of a
  /// collective use the same engine, that engine is listed with the collective instead.
  private static SequencedMap<String, SequencedSet<String>> engines(List<Ability> abilities) {
    var ofAllWays = new LinkedHashMap<String, String>();
    AbilityGrid.cells(abilities, Ability::transport)
        .forEach(
            (task, ways) -> {
              var own =
                  ways.values().stream()
                      .flatMap(List::stream)
                      .filter(Ability::supported)
                      .map(Ability::engine)
                      .distinct()
                      .toList();
              if (own.size() == 1 && ways.values().stream().filter(AbilityGrid::any).count() > 1) {
                ofAllWays.put(task, own.getFirst());
              }
            });
    var engines = new LinkedHashMap<String, SequencedSet<String>>();
    abilities.stream()
        .filter(ability -> ability.supported() && !ofAllWays.containsKey(ability.task()))
        .forEach(ability -> add(engines, ability.engine(), ability.transport()));
    ofAllWays.forEach((task, engine) -> add(engines, engine, task));
    return engines;
  }

  private static void add(
      SequencedMap<String, SequencedSet<String>> sets, String key, String name) {
    sets.computeIfAbsent(key, _ -> new LinkedHashSet<>()).add(name);
  }

  private static String listed(SequencedSet<String> names) {
    return String.join(", ", names);
  }
}
