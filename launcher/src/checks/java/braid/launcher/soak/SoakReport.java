package braid.launcher.soak;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.TreeSet;

/// Results of a soak, as a table.
final class SoakReport {
  private final List<Event> events = new ArrayList<>();
  private final List<String> leaks = new ArrayList<>();
  private final List<String> resources = new ArrayList<>();

  synchronized void add(Event event) {
    events.add(event);
  }

  synchronized void leaked(String leak) {
    leaks.add(leak);
  }

  /// Adds the resources of a front after the warm-up and at the end.
  synchronized void resources(String victim, Traces.Resources warm, Traces.Resources end) {
    resources.add(
        String.format(
            Locale.ROOT,
            "%s front: threads %d, then %d; descriptors %d, then %d; resident %.0f MiB, then %.0f MiB",
            victim,
            warm.threads(),
            end.threads(),
            warm.files(),
            end.files(),
            warm.residentMiB(),
            end.residentMiB()));
  }

  synchronized int count() {
    return events.size();
  }

  synchronized boolean isClean() {
    return leaks.isEmpty() && events.stream().allMatch(event -> event.fault().isEmpty());
  }

  synchronized void print(PrintWriter out) {
    out.println("| attack | events | reported after, median | at most | faults |");
    out.println("|---|---|---|---|---|");
    for (var victim : new TreeSet<>(events.stream().map(Event::victim).toList())) {
      for (var attack : Attack.values()) {
        var these =
            events.stream()
                .filter(event -> event.attack() == attack && event.victim().equals(victim))
                .toList();
        if (!these.isEmpty()) {
          out.println(row(victim + ": " + attack.title, these));
        }
      }
    }
    out.println(row("all", events));
    out.println();
    resources.forEach(out::println);
    for (var event : events) {
      event
          .fault()
          .ifPresent(
              fault ->
                  out.println(
                      "FAULT %s, %s, %s: %s"
                          .formatted(event.victim(), event.attack().title, event.target(), fault)));
    }
    leaks.forEach(leak -> out.println("LEAK " + leak));
    out.flush();
  }

  private static String row(String title, List<Event> these) {
    var seconds =
        these.stream()
            .map(Event::namedSeconds)
            .filter(OptionalDouble::isPresent)
            .mapToDouble(OptionalDouble::getAsDouble)
            .sorted()
            .toArray();
    long faults = these.stream().filter(event -> event.fault().isPresent()).count();
    return String.format(
        Locale.ROOT,
        "| %s | %d | %s | %s | %d |",
        title,
        these.size(),
        seconds.length == 0 ? "–" : seconds(seconds[seconds.length / 2]),
        seconds.length == 0 ? "–" : seconds(seconds[seconds.length - 1]),
        faults);
  }

  private static String seconds(double value) {
    return String.format(Locale.ROOT, "%.2f s", value);
  }
}
