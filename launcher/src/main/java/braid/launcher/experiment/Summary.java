package braid.launcher.experiment;

import braid.internal.report.HtmlTable;
import com.google.gson.JsonObject;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.Collectors;

/// A manifest as a dozen lines for readers.
final class Summary {
  private static final int REVISION_SHOWN = 12;

  private Summary() {}

  static SequencedMap<String, String> of(Manifest manifest) {
    var lines = new LinkedHashMap<String, String>();
    lines.put(
        "run",
        manifest.id()
            + manifest.text("repeats").map(id -> ", repeats " + id).orElse("")
            + manifest.text(Manifest.START_OF).map(id -> ", a start of " + id).orElse(""));
    lines.put("state", manifest.state().word());
    put(lines, "started", manifest.text("started"));
    put(lines, "notebook", manifest.text("notebook.name"));
    var parameters =
        manifest.parameters().entrySet().stream()
            .map(e -> e.getKey() + " = " + e.getValue())
            .collect(Collectors.joining(", "));
    put(lines, "parameters", Optional.of(parameters).filter(text -> !text.isEmpty()));
    put(lines, "source", source(manifest));
    put(lines, "ranks", manifest.text("session.ranks"));
    put(lines, "launcher", manifest.text("session.launcher"));
    put(lines, Manifest.HOSTS, hosts(manifest));
    put(
        lines,
        "backend",
        join(" (", List.of(manifest.text("session.backend"), manifest.text("session.why")))
            .map(text -> text.contains("(") ? text + ")" : text));
    put(lines, "link", manifest.text("session.link"));
    put(lines, "Braid", manifest.text("braid.version"));
    put(
        lines,
        "Java",
        join(", ", List.of(manifest.text("java.version"), manifest.text("java.vendor"))));
    put(
        lines,
        "machine",
        join(
            ", ",
            List.of(
                manifest.text("machine.processor"),
                manifest.text("machine.cores").map(cores -> cores + " cores"),
                manifest.text("machine.os"),
                manifest.text("machine.kernel"))));
    put(lines, "GPUs", manifest.text("gpus.words"));
    put(lines, "data", Optional.of(String.join(", ", manifest.data())).filter(s -> !s.isEmpty()));
    return lines;
  }

  private static Optional<String> hosts(Manifest manifest) {
    return manifest
        .at(Manifest.HOSTS)
        .filter(JsonObject.class::isInstance)
        .map(
            found ->
                found.getAsJsonObject().entrySet().stream()
                    .map(host -> "%s %s".formatted(host.getKey(), host.getValue()))
                    .collect(Collectors.joining(", ")));
  }

  private static Optional<String> source(Manifest manifest) {
    return manifest
        .text("git.revision")
        .map(
            revision ->
                revision.substring(0, Math.min(REVISION_SHOWN, revision.length()))
                    + (manifest.text("git.dirty").equals(Optional.of("true"))
                        ? ", with changes that are not committed"
                        : ""))
        .or(() -> manifest.text("git.none").map(why -> "unknown: " + why));
  }

  private static Optional<String> join(String separator, List<Optional<String>> parts) {
    var present = parts.stream().flatMap(Optional::stream).toList();
    return present.isEmpty() ? Optional.empty() : Optional.of(String.join(separator, present));
  }

  private static void put(SequencedMap<String, String> lines, String name, Optional<String> text) {
    text.ifPresent(value -> lines.put(name, value));
  }

  static String text(Manifest manifest) {
    var lines = of(manifest);
    int width = lines.keySet().stream().mapToInt(String::length).max().orElse(0);
    return lines.entrySet().stream()
        .map(e -> e.getKey() + " ".repeat(width + 2 - e.getKey().length()) + e.getValue())
        .collect(Collectors.joining("\n"));
  }

  static String html(Manifest manifest) {
    var html = new StringBuilder("<table><tbody>");
    var lines = of(manifest);
    for (var name : lines.keySet()) {
      html.append("<tr><th style=\"text-align:left\">")
          .append(HtmlTable.escape(name))
          .append("</th><td style=\"text-align:left\">")
          .append(HtmlTable.escape(Objects.requireNonNull(lines.get(name))))
          .append("</td></tr>");
    }
    return html.append("</tbody></table>").toString();
  }
}
