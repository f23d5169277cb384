package braid.natives.kernels;

import braid.natives.cuda.GpuCopy;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/// Arguments of a reduction, as bytes for the kernel, with the fastest kernel for them. Created
/// once and launched any number of times: a launch copies the bytes.
public final class ReduceArguments {
  /// Most parts of one launch.
  public static final int MOST_PARTS = 16;

  /// Most copies of a sum that one launch makes.
  private static final int MOST_COPIES = 15;

  // Offsets in the kernel's struct Reduction.
  private static final long CODES = 128;
  private static final long OUT = 192;
  private static final long PRE_ACTIVATION = 200;
  private static final long BIAS = 208;
  private static final long AMAX = 216;
  private static final long COUNT = 224;
  private static final long COLUMNS = 232;
  private static final long SCALE = 240;
  private static final long PART_COUNT = 244;
  private static final long OUT_CODE = 248;
  private static final long ACCUMULATE = 252;
  private static final long OUT_SCALE = 256;
  private static final long APART = 260;
  private static final long STRIDES = 264;
  private static final long OUT_STRIDE = 392;
  private static final long COPIES = 400;
  private static final long COPY_COUNT = 520;
  private static final long BYTES = 528;

  /// Bytes of the widest access; a thread handles one access at a time.
  private static final int VECTOR_BYTES = 16;

  static final String ANY = "reduce_any";
  static final Set<String> FAST =
      Set.of(
          "reduce_fp32_fp32",
          "reduce_fp32_bf16",
          "reduce_fp32_fp16",
          "reduce_fp32_e4m3",
          "reduce_fp32_e5m2",
          "reduce_bf16_fp32",
          "reduce_bf16_bf16",
          "reduce_bf16_e4m3",
          "reduce_bf16_e5m2",
          "reduce_fp16_fp32",
          "reduce_fp16_fp16",
          "reduce_e4m3_e4m3",
          "reduce_e5m2_e5m2");

  /// One addend, or the sum.
  ///
  /// @param stride numbers from one row to the next; 0 for rows without gaps
  public record Part(long address, ElementType type, long stride) {
    public Part(long address, ElementType type) {
      this(address, type, 0);
    }
  }

  /// Operations on the sum, in this order; an address of 0 disables one.
  ///
  /// ```java
  /// value = scale * sum;
  /// if (parts > 1) value = rounded(value);    // to the first part's type, as a collective would
  /// if (accumulate) value += out;
  /// if (bias) value += bias[column];
  /// if (preActivation) { preActivation = value; value = gelu(preActivation); }
  /// if (amax) amax = max(amax, abs(value));
  /// out = outScale * value;
  /// ```
  public record Finish(
      float scale, boolean accumulate, long bias, long preActivation, long amax, float outScale) {
    public static final Finish NONE = new Finish(1, false, 0, 0, 0, 1);
  }

  private final MemorySegment bytes = Arena.ofAuto().allocate(BYTES, Long.BYTES);
  private final Part out;

  /// Memory that the sum reads or writes beside its parts.
  private final List<Range> others;

  private final List<Range> parts;
  private final List<GpuCopy> copies;
  private final String kernel;
  private final long count;

  private ReduceArguments(List<Part> parts, Part out, long rows, long columns, Finish finish) {
    this.out = out;
    count = Math.multiplyExact(rows, columns);
    this.parts = parts.stream().map(part -> range(part.address(), count, part.type())).toList();
    var side = side(out.type());
    this.others =
        List.of(
            range(out.address(), count, out.type()),
            range(finish.bias(), columns, side),
            range(finish.preActivation(), count, side),
            range(finish.amax(), 1, ElementType.FP32));
    for (int i = 0; i < parts.size(); i++) {
      bytes.setAtIndex(ValueLayout.JAVA_LONG, i, parts.get(i).address());
      bytes.set(ValueLayout.JAVA_INT, CODES + (long) i * Integer.BYTES, parts.get(i).type().code());
      bytes.set(
          ValueLayout.JAVA_LONG, STRIDES + (long) i * Long.BYTES, stride(parts.get(i), columns));
    }
    bytes.set(ValueLayout.JAVA_LONG, OUT, out.address());
    bytes.set(ValueLayout.JAVA_LONG, OUT_STRIDE, stride(out, columns));
    boolean apart =
        Stream.concat(parts.stream(), Stream.of(out))
            .anyMatch(each -> stride(each, columns) != columns);
    bytes.set(ValueLayout.JAVA_INT, APART, apart ? 1 : 0);
    bytes.set(ValueLayout.JAVA_LONG, PRE_ACTIVATION, finish.preActivation());
    bytes.set(ValueLayout.JAVA_LONG, BIAS, finish.bias());
    bytes.set(ValueLayout.JAVA_LONG, AMAX, finish.amax());
    bytes.set(ValueLayout.JAVA_LONG, COUNT, count);
    bytes.set(ValueLayout.JAVA_LONG, COLUMNS, columns);
    bytes.set(ValueLayout.JAVA_FLOAT, SCALE, finish.scale());
    bytes.set(ValueLayout.JAVA_INT, PART_COUNT, parts.size());
    bytes.set(ValueLayout.JAVA_INT, OUT_CODE, out.type().code());
    bytes.set(ValueLayout.JAVA_INT, ACCUMULATE, finish.accumulate() ? 1 : 0);
    bytes.set(ValueLayout.JAVA_FLOAT, OUT_SCALE, finish.outScale());
    copies = List.of();
    kernel = kernel(parts, out, apart, finish);
  }

  /// Arguments of the same sum with copies.
  private ReduceArguments(ReduceArguments sum, List<GpuCopy> copies) {
    this.copies = copies;
    out = sum.out;
    count = sum.count;
    parts = sum.parts;
    others = sum.others;
    bytes.copyFrom(sum.bytes);
    for (int i = 0; i < copies.size(); i++) {
      bytes.set(ValueLayout.JAVA_LONG, COPIES + (long) i * Long.BYTES, copies.get(i).to());
    }
    bytes.set(ValueLayout.JAVA_LONG, COPY_COUNT, copies.size());
    kernel = copies.stream().allMatch(copy -> copy.to() % VECTOR_BYTES == 0) ? sum.kernel : ANY;
  }

  /// Bytes in memory.
  private record Range(long begin, long end) {
    boolean overlaps(Range range) {
      return begin < range.end && range.begin < end;
    }
  }

  private static Range range(long address, long count, ElementType type) {
    return new Range(address, address + count * type.bytes());
  }

  /// Returns arguments of the same sum that make these copies too, after those that it makes
  /// already; empty if they are not all copies of the whole sum, or too many, or if one would
  /// overwrite numbers that the sum still needs, or another copy. A copy may overwrite a whole
  /// part: each number of it is read before.
  public Optional<ReduceArguments> with(List<GpuCopy> more) {
    boolean apart = bytes.get(ValueLayout.JAVA_INT, APART) != 0;
    var all = new ArrayList<>(copies);
    for (var copy : more) {
      var written = range(copy.to(), count, out.type());
      if (apart
          || copy.from() != out.address()
          || copy.bytes() != written.end - written.begin
          || isNeededIn(written)
          || all.stream().anyMatch(each -> written.overlaps(range(each.to(), count, out.type())))) {
        return Optional.empty();
      }
      all.add(copy);
    }
    return all.size() <= MOST_COPIES
        ? Optional.of(new ReduceArguments(this, List.copyOf(all)))
        : Optional.empty();
  }

  private boolean isNeededIn(Range written) {
    return others.stream().anyMatch(written::overlaps)
        || parts.stream().anyMatch(part -> written.overlaps(part) && !written.equals(part));
  }

  /// Type of bias and pre-activation: the output's, or BF16 if it is fp8.
  static ElementType side(ElementType out) {
    return switch (out) {
      case E4M3, E5M2 -> ElementType.BF16;
      case FP32, TF32, BF16, FP16 -> out;
    };
  }

  private static long stride(Part part, long columns) {
    return part.stride() == 0 ? columns : part.stride();
  }

  /// Returns arguments for the sum of parts in order, accumulated in fp32. Parts, `out` and the
  /// pre-activation are rows × columns, the latter without gaps. The pre-activation has the bias's
  /// type: that of `out`, or BF16 if that is fp8. A part may be `out` itself but must not overlap
  /// it otherwise. The only part may be the pre-activation itself, also with gaps.
  public static ReduceArguments of(
      List<Part> parts, Part out, long rows, long columns, Finish finish) {
    if (parts.isEmpty() || parts.size() > MOST_PARTS) {
      throw new IllegalArgumentException(
          "a sum must have 1..%d parts but has %d".formatted(MOST_PARTS, parts.size()));
    }
    if (rows < 0 || columns < 0) {
      throw new IllegalArgumentException(
          "rows and columns must be 0 or more but were %d and %d".formatted(rows, columns));
    }
    parts.forEach(part -> aligned("a part", part.address(), part.type()));
    var type = out.type();
    aligned("the sum", out.address(), type);
    aligned("the bias", finish.bias(), side(type));
    aligned("the pre-activation", finish.preActivation(), side(type));
    aligned("amax", finish.amax(), ElementType.FP32);
    return new ReduceArguments(parts, out, rows, columns, finish);
  }

  private static void aligned(String operand, long address, ElementType type) {
    if (address % type.bytes() != 0) {
      throw new IllegalArgumentException(
          "%s of %s must lie at a multiple of %d bytes but was at %x"
              .formatted(operand, type, type.bytes(), address));
    }
  }

  MemorySegment bytes() {
    return bytes;
  }

  long count() {
    return count;
  }

  /// Name of the kernel: `reduce_bf16_bf16`, or `reduce_any`, which reads one number at a time.
  public String kernel() {
    return kernel;
  }

  private static String kernel(List<Part> parts, Part out, boolean apart, Finish finish) {
    var inputType = parts.getFirst().type().stored();
    var to = out.type().stored();
    var name = ("reduce_" + inputType + "_" + to).toLowerCase(Locale.ROOT);
    int each = VECTOR_BYTES / Math.max(inputType.bytes(), to.bytes());
    long sideBytes = (long) each * side(to).bytes();
    boolean fast =
        FAST.contains(name)
            && !apart
            && out.address() % ((long) each * to.bytes()) == 0
            && finish.preActivation() % sideBytes == 0
            && (sideBytes <= VECTOR_BYTES || (finish.bias() | finish.preActivation()) == 0)
            && parts.stream()
                .allMatch(
                    part ->
                        part.type().stored() == inputType
                            && part.address() % ((long) each * inputType.bytes()) == 0);
    return fast ? name : ANY;
  }
}
