package braid.internal.selftest;

import braid.Pipeline;
import braid.model.AttentionSpec;
import braid.model.Fused;
import braid.schedule.Part;

/// Columns of a tensor that are query, key or value, or the gradient of one, by the definition of
/// [Fused].
///
/// @param tensor the fused tensor, or the part itself
public record PartColumns(Part tensor, int first, int count) {
  public static PartColumns of(AttentionSpec spec, Part part) {
    boolean isGradient = part.name().endsWith("_GRADIENT");
    var name = part.name().replace("_GRADIENT", "");
    boolean isQuery = name.equals("QUERY");
    int columns = spec.heads() * spec.headSize();
    int kvColumns = spec.kvHeads() * spec.headSize();
    int count = isQuery ? columns : kvColumns;
    if (spec.fused() == Fused.NONE || (isQuery && spec.fused() == Fused.KV)) {
      return new PartColumns(part, 0, count);
    }
    int first = isQuery ? 0 : spec.fused() == Fused.QKV ? columns : 0;
    return new PartColumns(
        Part.valueOf(spec.fused().name() + (isGradient ? "_GRADIENT" : "")),
        name.equals("VALUE") ? first + kvColumns : first,
        count);
  }

  /// Returns this rank's numbers, a row per token.
  public float[] load(Pipeline pipeline) {
    return copied(pipeline, new float[rows(pipeline) * count], false);
  }

  /// Writes this rank's numbers, a row per token.
  public void store(Pipeline pipeline, float... numbers) {
    var _ = copied(pipeline, numbers, true);
  }

  private int rows(Pipeline pipeline) {
    return Math.toIntExact(pipeline.tensor(tensor).shape().getFirst());
  }

  private float[] copied(Pipeline pipeline, float[] numbers, boolean stores) {
    var view = pipeline.tensor(tensor);
    var all = view.toFloats();
    int columns = Math.toIntExact(view.shape().get(1));
    for (int row = 0; row < rows(pipeline); row++) {
      for (int column = 0; column < count; column++) {
        int index = row * columns + first + column;
        int own = row * count + column;
        if (stores) {
          all[index] = numbers[own];
        } else {
          numbers[own] = all[index];
        }
      }
    }
    if (stores) {
      var _ = view.copyFrom(all);
    }
    return numbers;
  }
}
