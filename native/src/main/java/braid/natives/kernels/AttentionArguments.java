package braid.natives.kernels;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Arguments of attention, as bytes for the kernels. Created once and launched any number of times:
/// a launch copies the bytes.
public final class AttentionArguments {
  // Offsets in the kernel's struct Attention.
  private static final long STRIDES = 40;
  private static final long SHIFT = 80;
  private static final long ROWS = 88;
  private static final long KEYS = 92;
  private static final long HEADS = 96;
  private static final long GROUP = 100;
  private static final long HEAD_SIZE = 104;
  private static final long CAUSAL = 108;
  private static final long WINDOW = 112;
  private static final long CODE = 116;
  private static final long OUT_CODE = 120;
  private static final long CONTINUED = 124;
  private static final long SCALE = 128;
  static final long FIRST_COLUMN = 132;
  private static final long WRITES_LSE = 136;
  private static final long TOGETHER = 140;
  private static final long SEEN = 144;
  private static final long TOKENS = 152;
  private static final long EARLIER = 160;
  static final long BYTES = 168;

  /// Keys and values that stay in the L2 cache of a data center GPU.
  private static final long CACHED_BYTES = 32 << 20;

  private static final double LOG_2 = Math.log(2);

  private static final String KERNEL = "attention_plain_";

  static final int THREADS = 256;

  /// Rows of a block.
  static final int BLOCK_ROWS = 64;

  private static final int FEWEST_COLUMNS = 64;
  private static final int MOST_COLUMNS = 128;

  /// Rows of a tensor, `stride` elements apart. A row has the numbers of all heads.
  public record Rows(long address, ElementType type, int count, long stride) {
    void checkAddress() {
      if (address % type.bytes() != 0) {
        throw new IllegalArgumentException(
            "rows of %s must lie at a multiple of %d bytes but were at %x"
                .formatted(type, type.bytes(), address));
      }
    }
  }

  /// Heads of the query.
  ///
  /// @param group number of heads that share a head of key and value
  /// @param size numbers per head and row
  public record Heads(int count, int group, int size) {}

  /// Positions that a row of the query sees.
  ///
  /// @param queryPosition position of the first row of the query
  /// @param keyPosition position of the first row of key and value
  /// @param causal true if a row sees no later position
  /// @param window number of positions that a row sees, its own the last; 0 for no limit
  /// @param seen address of the first key that each row sees and the end of these, 32 bits each,
  ///   which replace the above; both never fall from row to row; 0 for none
  /// @param tokens address of a byte for each key, 0 if it is padding, whose value may be NaN; 0 if
  ///   none is
  public record Mask(
      long queryPosition, long keyPosition, boolean causal, int window, long seen, long tokens) {
    public Mask(long queryPosition, long keyPosition, boolean causal, int window) {
      this(queryPosition, keyPosition, causal, window, 0, 0);
    }
  }

  /// Query, key, value, output and LSE with their heads.
  record Operands(
      Rows query, Rows key, Rows value, Rows output, Rows lse, Heads heads, float scale) {}

  private final Operands operands;
  private final int blocks;
  private final List<MemorySegment> launches;

  private AttentionArguments(Operands operands, int blocks, List<MemorySegment> launches) {
    this.operands = operands;
    this.blocks = blocks;
    this.launches = List.copyOf(launches);
  }

  /// Returns arguments for attention of the query's rows, all at consecutive positions, to those of
  /// key and value. Query, key and value have one type; the output has it too, or fp32. The LSE has
  /// a number per row and head.
  ///
  /// @param scale factor of the scores
  /// @param earlier address of the output by other keys, in fp32 and with the output's stride,
  ///   which is included; its LSE is in `lse`. May be that of the output. 0 for none
  public static AttentionArguments of(
      Rows query,
      Rows key,
      Rows value,
      Rows output,
      Rows lse,
      Heads heads,
      Mask mask,
      float scale,
      long earlier) {
    check(query, key, value, output, lse, heads);
    if (earlier != 0 && earlier == output.address() && output.type().stored() != ElementType.FP32) {
      throw new IllegalArgumentException(
          "attention continues an output in FP32 but it was " + output.type());
    }
    int columns = columns(heads);
    var bytes = Arena.ofAuto().allocate(BYTES, Long.BYTES);
    var all = List.of(query, key, value, output, lse);
    for (int i = 0; i < all.size(); i++) {
      bytes.setAtIndex(ValueLayout.JAVA_LONG, i, all.get(i).address());
      bytes.set(ValueLayout.JAVA_LONG, STRIDES + (long) i * Long.BYTES, all.get(i).stride());
    }
    bytes.set(ValueLayout.JAVA_LONG, SHIFT, mask.queryPosition() - mask.keyPosition());
    bytes.set(ValueLayout.JAVA_INT, ROWS, query.count());
    bytes.set(ValueLayout.JAVA_INT, KEYS, key.count());
    bytes.set(ValueLayout.JAVA_INT, HEADS, heads.count());
    bytes.set(ValueLayout.JAVA_INT, GROUP, heads.group());
    bytes.set(ValueLayout.JAVA_INT, HEAD_SIZE, heads.size());
    bytes.set(ValueLayout.JAVA_INT, CAUSAL, mask.causal() ? 1 : 0);
    bytes.set(ValueLayout.JAVA_INT, WINDOW, mask.window());
    bytes.set(ValueLayout.JAVA_INT, CODE, query.type().code());
    bytes.set(ValueLayout.JAVA_INT, OUT_CODE, output.type().code());
    bytes.set(ValueLayout.JAVA_INT, CONTINUED, earlier == 0 ? 0 : 1);
    bytes.set(ValueLayout.JAVA_LONG, EARLIER, earlier);
    bytes.set(ValueLayout.JAVA_FLOAT, SCALE, (float) (scale / LOG_2));
    bytes.set(ValueLayout.JAVA_INT, TOGETHER, together(key, heads));
    bytes.set(ValueLayout.JAVA_LONG, SEEN, mask.seen());
    bytes.set(ValueLayout.JAVA_LONG, TOKENS, mask.tokens());
    var launches =
        IntStream.iterate(0, column -> column < heads.size(), column -> column + columns)
            .mapToObj(column -> launch(bytes, column, column + columns >= heads.size()))
            .toList();
    int blocks = Math.multiplyExact(heads.count(), Math.ceilDiv(query.count(), BLOCK_ROWS));
    return new AttentionArguments(
        new Operands(query, key, value, output, lse, heads, scale), blocks, launches);
  }

  /// Number of heads whose keys and values the cache holds together, at least one group.
  private static int together(Rows key, Heads heads) {
    long headBytes = 2L * Math.max(1, key.count()) * heads.size() * key.type().bytes();
    long groups = Math.max(1, CACHED_BYTES / headBytes);
    return (int) Math.min(heads.count(), groups * heads.group());
  }

  /// The last launch writes the LSE, since a continued one before it still reads the old one.
  private static MemorySegment launch(MemorySegment common, int firstColumn, boolean last) {
    var bytes = Arena.ofAuto().allocate(BYTES, Long.BYTES).copyFrom(common);
    bytes.set(ValueLayout.JAVA_INT, FIRST_COLUMN, firstColumn);
    bytes.set(ValueLayout.JAVA_INT, WRITES_LSE, last ? 1 : 0);
    return bytes;
  }

  private static void check(Rows query, Rows key, Rows value, Rows output, Rows lse, Heads heads) {
    var type = query.type();
    if (type.stored() != ElementType.FP32 && type != ElementType.BF16 && type != ElementType.FP16) {
      throw new IllegalArgumentException(
          "attention is in FP32, BF16 or FP16 but the query is " + type);
    }
    if (key.type() != type || value.type() != type) {
      throw new IllegalArgumentException(
          "query, key and value must have one type but were %s, %s and %s"
              .formatted(type, key.type(), value.type()));
    }
    if (output.type() != type && output.type().stored() != ElementType.FP32) {
      throw new IllegalArgumentException(
          "the output must be %s or FP32 but was %s".formatted(type, output.type()));
    }
    if (lse.type() != ElementType.FP32) {
      throw new IllegalArgumentException("the LSE must be FP32 but was " + lse.type());
    }
    if (key.count() != value.count()
        || query.count() != output.count()
        || query.count() != lse.count()) {
      throw new IllegalArgumentException(
          "numbers of rows do not fit: query %d, output %d, LSE %d; key %d, value %d"
              .formatted(query.count(), output.count(), lse.count(), key.count(), value.count()));
    }
    if (heads.group() < 1 || heads.size() < 1 || heads.count() % heads.group() != 0) {
      throw new IllegalArgumentException("heads do not fit: " + heads);
    }
    Stream.of(query, key, value, output, lse).forEach(Rows::checkAddress);
  }

  /// Returns the columns of the heads' outputs that a launch computes.
  static int columns(Heads heads) {
    return heads.size() <= FEWEST_COLUMNS ? FEWEST_COLUMNS : MOST_COLUMNS;
  }

  /// Name of the kernel: `attention_plain_128`.
  public String kernel() {
    return KERNEL + columns(operands.heads());
  }

  Operands operands() {
    return operands;
  }

  int blocks() {
    return blocks;
  }

  /// Arguments of the kernel, launch by launch.
  List<MemorySegment> launches() {
    return launches;
  }

  /// Names of all kernels.
  static Stream<String> kernels() {
    return Stream.of(KERNEL + FEWEST_COLUMNS, KERNEL + MOST_COLUMNS);
  }
}
