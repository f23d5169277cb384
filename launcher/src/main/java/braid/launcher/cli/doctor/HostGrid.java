package braid.launcher.cli.doctor;

import braid.Capabilities;
import braid.model.BackendKind;
import braid.model.MemoryKind;
import braid.natives.ucx.UcxWorker;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedSet;

/// Kinds of memory and methods by the hosts that they span, on both backends.
final class HostGrid {
  private HostGrid() {}

  static List<String> lines(int columns) {
    var lines = new ArrayList<String>();
    lines.add("Hosts of the ranks that can share memory:");
    lines.addAll(AbilityGrid.aligned(memories()));
    for (var backend : List.of(BackendKind.HOST, BackendKind.CUDA)) {
      var grid = new AbilityGrid(columns);
      lines.add("");
      lines.add("Methods by the hosts that they span, on the %s backend:".formatted(backend));
      for (var methods :
          List.of(supported(Ability.overlaps(backend)), supported(Ability.attentions(backend)))) {
        if (!methods.isEmpty()) {
          lines.addAll(grid.lines(methods, Ability::way, cell -> spans(cell, backend)));
        }
      }
      lines.add("Collectives, by memory:");
      var collectives = supported(Ability.collectives(backend));
      lines.addAll(grid.lines(collectives, Ability::memory, cell -> spans(cell, backend)));
    }
    lines.add("");
    lines.add(
        UcxWorker.missing()
            .map(why -> "Memory of several hosts is refused here: " + why)
            .orElse(
                "Memory of several hosts goes by UCX, which is available here, and by NCCL between GPUs."));
    return lines;
  }

  /// Returns the supported rows without their limits, which the other tables of `doctor` have.
  private static List<Ability> supported(List<Ability> abilities) {
    return abilities.stream()
        .filter(Ability::supported)
        .map(
            each ->
                new Ability(each.task(), each.way(), each.transport(), each.memory(), true, "", ""))
        .toList();
  }

  private static List<List<String>> memories() {
    var table = new ArrayList<List<String>>();
    table.add(List.of("memory", "host backend", "GPUs"));
    for (var kind : Capabilities.kinds()) {
      boolean onHost =
          Ability.overlaps(BackendKind.HOST).stream()
              .anyMatch(each -> each.supported() && each.memory().equals(kind.toString()));
      table.add(
          List.of(
              kind.toString(),
              onHost ? kind.span(BackendKind.HOST).toString() : "–",
              kind.span(BackendKind.CUDA).toString()));
    }
    return table;
  }

  /// Returns one text for each span in a cell, with its kinds of memory.
  private static List<String> spans(List<Ability> cell, BackendKind backend) {
    var kinds = new LinkedHashMap<MemoryKind.Span, SequencedSet<String>>();
    cell.forEach(
        ability ->
            kinds
                .computeIfAbsent(ability.span(backend), _ -> new LinkedHashSet<>())
                .add(ability.memory()));
    return kinds.entrySet().stream()
        .map(
            each -> "%s, in %s memory".formatted(each.getKey(), String.join(", ", each.getValue())))
        .toList();
  }
}
