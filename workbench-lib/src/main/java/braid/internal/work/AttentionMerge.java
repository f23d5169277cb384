package braid.internal.work;

import braid.internal.work.AttentionBlock.Part;
import java.util.List;

/// Merges attention of the same rows to different keys, in fp32 and in the order of the parts. The
/// result may be one of the parts; its output is rounded to its type.
public record AttentionMerge(List<Part> parts, Part result) {
  public AttentionMerge {
    parts = List.copyOf(parts);
    for (var part : parts) {
      if (part.output().rows() != result.output().rows()
          || part.output().columns() != result.output().columns()
          || part.lse().columns() != result.lse().columns()) {
        throw new IllegalArgumentException("sizes do not fit: %s, %s".formatted(part, result));
      }
    }
  }

  /// Number of bytes read and written.
  public long bytes() {
    return parts.stream().mapToLong(Part::bytes).sum() + result.bytes();
  }
}
