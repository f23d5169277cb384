package braid.launcher.cli.doctor;

import braid.model.BackendKind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.stream.Collectors;

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
    lines.addAll(grid.lines(overlaps, Ability::way, AbilityTable::answers));
    if (!attentions.isEmpty()) {
      lines.addAll(grid.lines(attentions, Ability::way, AbilityTable::answers));
    }
    if (!collectives.isEmpty()) {
      lines.add("Collectives:");
      lines.addAll(collectives());
    }
    var notes = grid.notes();
    if (!notes.isEmpty()) {
      lines.add("Notes:");
      lines.addAll(notes);
    }
    return lines;
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

  private List<String> collectives() {
    var supported =
        collectives.stream()
            .filter(Ability::supported)
            .map(Ability::transport)
            .collect(Collectors.toCollection(LinkedHashSet::new));
    var present = collectives.stream().filter(a -> supported.contains(a.transport())).toList();
    var lines = new ArrayList<>(grid.lines(present, Ability::transport, AbilityTable::memories));
    engines(present).forEach((engine, of) -> lines.addAll(grid.wrapped(listed(of) + "  ", engine)));
    var missing = new LinkedHashMap<String, SequencedSet<String>>();
    collectives.stream()
        .filter(ability -> !supported.contains(ability.transport()))
        .forEach(ability -> add(missing, ability.reason(), ability.transport()));
    missing.forEach(
        (why, of) -> lines.addAll(grid.wrapped("", "not by %s: %s".formatted(listed(of), why))));
    return lines;
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
