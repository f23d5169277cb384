package braid.launcher.cli.doctor;

import braid.Capabilities;
import braid.model.BackendKind;
import braid.model.Collective;
import braid.model.MemoryKind;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.stream.Stream;

/// One combination of task, way, transport and memory, and whether Braid supports it. A collective
/// outside a pipeline has no way.
///
/// @param task pattern or collective
/// @param way method
/// @param reason limits if it is supported, else why it is not
record Ability(
    String task,
    String way,
    String transport,
    String memory,
    boolean supported,
    String engine,
    String reason) {
  static final String NO_WAY = "";

  private static final String ATTENTION = "attention, both passes";

  static List<Ability> overlaps(BackendKind backend) {
    return Capabilities.of(backend).stream()
        .map(
            row ->
                new Ability(
                    row.pattern().toString(),
                    row.method().toString(),
                    row.transport().toString(),
                    row.kind().toString(),
                    row.supported(),
                    row.engine(),
                    row.note()))
        .toList();
  }

  static List<Ability> attentions(BackendKind backend) {
    return Capabilities.attentionOf(backend).stream()
        .map(
            row ->
                new Ability(
                    ATTENTION,
                    row.method().toString(),
                    row.transport().toString(),
                    row.kind().toString(),
                    row.supported(),
                    row.engine(),
                    row.note()))
        .toList();
  }

  static List<Ability> collectives(BackendKind backend) {
    return Capabilities.collectivesOf(backend).stream()
        .map(
            row ->
                new Ability(
                    row.collective().toString(),
                    NO_WAY,
                    row.way().toString(),
                    row.kind().toString(),
                    row.supported(),
                    row.engine(),
                    row.note()))
        .toList();
  }

  /// Returns the hosts whose ranks can do this together: those that share its memory. Messages
  /// between GPUs stay within a host.
  MemoryKind.Span span(BackendKind backend) {
    boolean message =
        Stream.of(Collective.SEND, Collective.RECEIVE)
            .anyMatch(each -> each.toString().equals(task));
    return message && backend == BackendKind.CUDA
        ? MemoryKind.Span.ONE_HOST
        : MemoryKind.parse(memory).span(backend);
  }

  /// @param taskName name of the task's field: pattern or collective
  JsonObject json(String taskName, BackendKind backend) {
    var json = new JsonObject();
    json.addProperty(taskName, task);
    if (!way.equals(NO_WAY)) {
      json.addProperty("method", way);
    }
    json.addProperty("transport", transport);
    json.addProperty("memory", memory);
    json.addProperty("supported", supported);
    json.addProperty("engine", engine);
    json.addProperty("note", reason);
    json.addProperty("spans", span(backend).toString());
    return json;
  }
}
