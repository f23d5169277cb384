package braid.natives.kernels;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/// Arguments of the kernel that merges attention of the same rows to different keys. Created once
/// and launched any number of times: a launch copies the bytes.
public final class AttentionMergeArguments {
  /// Most parts of one launch.
  public static final int MOST_PARTS = 16;

  // Offsets in the kernel's struct AttentionParts.
  private static final long LSES = 128;
  private static final long OUTPUT = 256;
  private static final long LSE = 264;
  private static final long COUNT = 272;
  private static final long HEAD_SIZE = 280;
  private static final long PARTS = 284;
  private static final long OUT_CODE = 288;
  private static final long BY_FOUR = 292;
  private static final long BYTES = 312;

  /// Numbers of the widest access.
  private static final int VECTOR = 4;

  /// Addresses of an output and its LSE, both in fp32 and without gaps.
  public record Part(long output, long lse) {}

  private final MemorySegment bytes = Arena.ofAuto().allocate(BYTES, Long.BYTES);
  private final long count;

  private AttentionMergeArguments(
      List<Part> parts, Part result, ElementType type, long rows, int heads, int headSize) {
    count = Math.multiplyExact(rows, heads);
    for (int i = 0; i < parts.size(); i++) {
      bytes.setAtIndex(ValueLayout.JAVA_LONG, i, parts.get(i).output());
      bytes.set(ValueLayout.JAVA_LONG, LSES + (long) i * Long.BYTES, parts.get(i).lse());
    }
    boolean byFour =
        headSize % VECTOR == 0
            && result.output() % ((long) VECTOR * type.bytes()) == 0
            && parts.stream().allMatch(part -> part.output() % (VECTOR * Float.BYTES) == 0);
    bytes.set(ValueLayout.JAVA_LONG, OUTPUT, result.output());
    bytes.set(ValueLayout.JAVA_LONG, LSE, result.lse());
    bytes.set(ValueLayout.JAVA_LONG, COUNT, count);
    bytes.set(ValueLayout.JAVA_INT, HEAD_SIZE, headSize);
    bytes.set(ValueLayout.JAVA_INT, PARTS, parts.size());
    bytes.set(ValueLayout.JAVA_INT, OUT_CODE, type.code());
    bytes.set(ValueLayout.JAVA_INT, BY_FOUR, byFour ? 1 : 0);
  }

  /// Returns arguments for a merge of parts in order. The result may be one of the parts; its
  /// output is rounded to `type`.
  public static AttentionMergeArguments of(
      List<Part> parts, Part result, ElementType type, long rows, int heads, int headSize) {
    if (parts.isEmpty() || parts.size() > MOST_PARTS) {
      throw new IllegalArgumentException(
          "a merge must have 1..%d parts but has %d".formatted(MOST_PARTS, parts.size()));
    }
    if (type.stored() != ElementType.FP32 && type != ElementType.BF16 && type != ElementType.FP16) {
      throw new IllegalArgumentException(
          "attention is merged to FP32, BF16 or FP16 but not to " + type);
    }
    return new AttentionMergeArguments(parts, result, type, rows, heads, headSize);
  }

  MemorySegment bytes() {
    return bytes;
  }

  /// Number of rows of all heads together.
  long count() {
    return count;
  }
}
