package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.schedule.Buffer;
import braid.schedule.Part;
import braid.schedule.Schedule;
import java.util.EnumMap;
import java.util.List;
import java.util.function.Function;

/// Query, key and value of an attention, or their gradients: a buffer each, or columns of fused
/// ones.
record Projections(Panel query, KeyValue keys) {
  /// Adds the tensors that the caller gives. Other ranks access the keys, and what is fused with
  /// them.
  ///
  /// @param exchanged true if other ranks access the query too
  static Projections given(AttentionSpec spec, Schedule.Builder builder, boolean exchanged) {
    return added(
        spec,
        List.of(Part.QUERY, Part.KEY, Part.VALUE),
        part -> part == Part.QUERY && !exchanged ? builder.local(part) : builder.symmetric(part));
  }

  /// Adds the gradients.
  ///
  /// @param exchanged true if other ranks access them
  static Projections gradients(AttentionSpec spec, Schedule.Builder builder, boolean exchanged) {
    return added(
        spec,
        List.of(Part.QUERY_GRADIENT, Part.KEY_GRADIENT, Part.VALUE_GRADIENT),
        exchanged ? builder::symmetric : builder::local);
  }

  private static Projections added(
      AttentionSpec spec, List<Part> parts, Function<Part, Buffer> adding) {
    var buffers = new EnumMap<Part, Buffer>(Part.class);
    var panels =
        parts.stream()
            .map(
                part ->
                    new Panel(
                        part.port(),
                        buffers.computeIfAbsent(part.tensor(spec), adding),
                        part.columnsOfTensor(spec)))
            .toList();
    return new Projections(panels.get(0), new KeyValue(panels.get(1), panels.get(2)));
  }
}
