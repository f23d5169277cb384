package braid.natives.kernels;

import braid.natives.kernels.AttentionArguments.Operands;
import braid.natives.kernels.AttentionArguments.Rows;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Arguments of the gradients of attention, as bytes for the kernels. Created once and launched any
/// number of times: a launch copies the bytes.
public final class AttentionGradientArguments {
  // Offsets in the kernel's struct AttentionGradient.
  private static final long POINTERS = AttentionArguments.BYTES;
  private static final long STRIDES = 200;
  private static final long STATISTICS = 232;
  private static final long SEEING = 240;
  private static final long QUERY_TOKENS = 248;
  private static final long SCALE = 256;
  private static final long ADDS_QUERY = 260;
  private static final long ADDS_KEYS = 264;
  private static final long QUERY_CODE = 268;
  private static final long KEYS_CODE = 272;
  private static final long BYTES = 280;

  private static final String PREFIX = "attention_gradient_";
  private static final String QUERY = PREFIX + "query_plain_";
  private static final String KEYS = PREFIX + "keys_plain_";

  /// Gradients of the output, which is read, and of query, key and value: in FP32, or in the type
  /// of the query if nothing is added to them.
  ///
  /// @param addsQuery true to add to the gradient of the query; false to overwrite it
  /// @param addsKeys true to add to the gradients of key and value; false to overwrite them
  public record Gradients(
      Rows output, Rows query, Rows key, Rows value, boolean addsQuery, boolean addsKeys) {}

  /// Addresses in memory of the GPU.
  ///
  /// @param statistics scratch memory of [#statisticsBytes]
  /// @param seeing of the first row that sees each key and the end of these, 32 bits each, if the
  ///   mask has a table of the keys that each row sees; both never fall from key to key; else 0
  /// @param queryTokens of a byte for each row, 0 if it is padding, which may be NaN; 0 if none is
  public record Memory(long statistics, long seeing, long queryTokens) {}

  /// A launch of one of the kernels.
  record Launch(String kernel, int blocks, MemorySegment bytes) {}

  private final MemorySegment bytes;
  private final long count;
  private final List<Launch> launches;

  private AttentionGradientArguments(MemorySegment bytes, long count, List<Launch> launches) {
    this.bytes = bytes;
    this.count = count;
    this.launches = List.copyOf(launches);
  }

  /// Returns the bytes of scratch memory that the gradients of that many rows need.
  public static long statisticsBytes(int rows, int heads) {
    return 2L * Float.BYTES * rows * heads;
  }

  /// Returns arguments for the gradients of attention, whose output and LSE are read: those of the
  /// attention to all keys, not only to the keys of these arguments.
  public static AttentionGradientArguments of(
      AttentionArguments attention, Gradients gradients, Memory memory) {
    var operands = attention.operands();
    check(operands, gradients);
    var bytes = Arena.ofAuto().allocate(BYTES, Long.BYTES);
    MemorySegment.copy(attention.launches().getFirst(), 0, bytes, 0, AttentionArguments.BYTES);
    var all = List.of(gradients.output(), gradients.query(), gradients.key(), gradients.value());
    for (int i = 0; i < all.size(); i++) {
      long offset = (long) i * Long.BYTES;
      bytes.set(ValueLayout.JAVA_LONG, POINTERS + offset, all.get(i).address());
      bytes.set(ValueLayout.JAVA_LONG, STRIDES + offset, all.get(i).stride());
    }
    bytes.set(ValueLayout.JAVA_LONG, STATISTICS, memory.statistics());
    bytes.set(ValueLayout.JAVA_LONG, SEEING, memory.seeing());
    bytes.set(ValueLayout.JAVA_LONG, QUERY_TOKENS, memory.queryTokens());
    bytes.set(ValueLayout.JAVA_FLOAT, SCALE, operands.scale());
    bytes.set(ValueLayout.JAVA_INT, ADDS_QUERY, gradients.addsQuery() ? 1 : 0);
    bytes.set(ValueLayout.JAVA_INT, ADDS_KEYS, gradients.addsKeys() ? 1 : 0);
    bytes.set(ValueLayout.JAVA_INT, QUERY_CODE, gradients.query().type().code());
    bytes.set(ValueLayout.JAVA_INT, KEYS_CODE, gradients.key().type().code());
    var heads = operands.heads();
    int columns = AttentionArguments.columns(heads);
    int ofQuery =
        Math.multiplyExact(
            heads.count(), Math.ceilDiv(operands.query().count(), AttentionArguments.BLOCK_ROWS));
    int ofKeys =
        Math.multiplyExact(
            heads.count() / heads.group(),
            Math.ceilDiv(operands.key().count(), AttentionArguments.BLOCK_ROWS));
    var launches =
        IntStream.iterate(0, column -> column < heads.size(), column -> column + columns)
            .mapToObj(column -> from(bytes, column))
            .flatMap(
                each ->
                    Stream.of(
                        new Launch(QUERY + columns, ofQuery, each),
                        new Launch(KEYS + columns, ofKeys, each)))
            .filter(launch -> launch.blocks() > 0)
            .toList();
    return new AttentionGradientArguments(
        bytes, (long) operands.query().count() * heads.count(), launches);
  }

  private static MemorySegment from(MemorySegment common, int firstColumn) {
    var bytes = Arena.ofAuto().allocate(BYTES, Long.BYTES).copyFrom(common);
    bytes.set(ValueLayout.JAVA_INT, AttentionArguments.FIRST_COLUMN, firstColumn);
    return bytes;
  }

  private static void check(Operands operands, Gradients gradients) {
    if (gradients.output().type() != operands.query().type()) {
      throw new IllegalArgumentException(
          "the gradient of the output must be %s but was %s"
              .formatted(operands.query().type(), gradients.output().type()));
    }
    check(operands, gradients.query(), gradients.addsQuery());
    check(operands, gradients.key(), gradients.addsKeys());
    check(operands, gradients.value(), gradients.addsKeys());
    if (gradients.key().type() != gradients.value().type()) {
      throw new IllegalArgumentException(
          "gradients of key and value must have one type but were %s and %s"
              .formatted(gradients.key().type(), gradients.value().type()));
    }
    gradients.output().checkAddress();
    if (gradients.output().count() != operands.query().count()
        || gradients.query().count() != operands.query().count()
        || gradients.key().count() != operands.key().count()
        || gradients.value().count() != operands.key().count()) {
      throw new IllegalArgumentException(
          "numbers of rows do not fit: query %d, key %d, their gradients %d, %d; gradients of output %d, value %d"
              .formatted(
                  operands.query().count(),
                  operands.key().count(),
                  gradients.query().count(),
                  gradients.key().count(),
                  gradients.output().count(),
                  gradients.value().count()));
    }
  }

  private static void check(Operands operands, Rows gradient, boolean adds) {
    if (gradient.type() != ElementType.FP32
        && (adds || gradient.type() != operands.query().type())) {
      throw new IllegalArgumentException(
          "gradients must be FP32%s but one was %s"
              .formatted(
                  adds ? " to be added to" : " or " + operands.query().type(), gradient.type()));
    }
    gradient.checkAddress();
  }

  /// Names of the kernels, each once: `attention_gradient_query_plain_128`.
  public List<String> kernels() {
    return launches.stream().map(Launch::kernel).distinct().toList();
  }

  /// Arguments of the kernel that computes the statistics.
  MemorySegment bytes() {
    return bytes;
  }

  /// Number of rows of all heads together.
  long count() {
    return count;
  }

  /// Launches after that of the statistics.
  List<Launch> launches() {
    return launches;
  }

  /// Names of all kernels but that of the statistics.
  static Stream<String> all() {
    return AttentionArguments.kernels()
        .map(name -> name.replaceAll("\\D", ""))
        .flatMap(columns -> Stream.of(QUERY + columns, KEYS + columns));
  }
}
