package braid.natives.cudnn;

import braid.natives.load.Feature;
import java.util.Optional;
import org.bytedeco.cuda.global.cudnn;

/// Attention of `rows` query rows to `keys` keys. A row holds `heads` × `headSize` numbers, one of
/// key and value `kvHeads` × `headSize`. Query head h uses key and value head h / (`heads` /
/// `kvHeads`). Rows of output and statistics have no gaps.
///
/// Query row r is at the position of key r + `shift`. If `causal`, it sees no later key; with a
/// `window`, only the last `window` of these.
///
/// Several sequences are computed together: each has its own rows and keys, and sees no others.
/// Equal ones have `rows` and `keys` each, one after another without gaps; packed ones have at most
/// as many. Every row must see a key.
///
/// @param shift at least 0; 0 for packed sequences
/// @param window 0 for no limit
/// @param scale factor of the scores
public record AttentionProblem(
    Type type,
    int heads,
    int kvHeads,
    int headSize,
    int rows,
    int keys,
    boolean causal,
    int shift,
    int window,
    float scale,
    Sequences sequences,
    Strides strides) {
  private static final int HEAD_SIZE_MULTIPLE = 8;
  private static final int MOST_HEAD_SIZE = 128;
  private static final int MOST_HEAD_SIZE_OF_HOPPER = 256;
  private static final int AMPERE = 80;
  private static final int HOPPER = 90;
  private static final int BLACKWELL = 100;

  /// Sequences that are computed together.
  ///
  /// @param rows number of rows in memory from the first sequence to the last, gaps included
  /// @param keys number of keys in memory, likewise
  /// @param areEqual true for sequences of equal numbers of rows and of keys without gaps
  public record Sequences(int count, int rows, int keys, boolean areEqual) {
    /// Returns whether tables say where each sequence is.
    public boolean arePacked() {
      return count > 1 && !areEqual;
    }
  }

  /// Numbers from one row to the next; 0 for rows without gaps.
  public record Strides(
      long query,
      long key,
      long value,
      long outputGradient,
      long queryGradient,
      long keyGradient,
      long valueGradient) {
    public static final Strides NONE = new Strides(0, 0, 0, 0, 0, 0, 0);
  }

  /// Type of query, key, value and output. Scores, sums and statistics are in fp32.
  public enum Type {
    BF16(cudnn.CUDNN_DATA_BFLOAT16),
    FP16(cudnn.CUDNN_DATA_HALF);

    private final int code;

    Type(int code) {
      this.code = code;
    }

    int code() {
      return code;
    }
  }

  /// Attention of one sequence.
  public AttentionProblem(
      Type type,
      int heads,
      int kvHeads,
      int headSize,
      int rows,
      int keys,
      boolean causal,
      int shift,
      int window,
      float scale) {
    this(
        type,
        heads,
        kvHeads,
        headSize,
        rows,
        keys,
        causal,
        shift,
        window,
        scale,
        new Sequences(1, rows, keys, true),
        Strides.NONE);
  }

  /// Returns why GPUs of this compute capability (90 is Hopper) cannot solve the problem by cuDNN;
  /// empty if they can.
  Optional<String> refusal(int architecture) {
    if (rows < 1 || keys < 1) {
      return because("%d rows and %d keys must be at least 1 each".formatted(rows, keys));
    }
    if (kvHeads < 1 || heads % kvHeads != 0) {
      return because("%d heads of key and value must divide %d heads".formatted(kvHeads, heads));
    }
    if (architecture < AMPERE) {
      return because(
          "it needs compute capability %s, found %s"
              .formatted(Feature.capability(AMPERE), Feature.capability(architecture)));
    }
    int most =
        architecture >= HOPPER && architecture < BLACKWELL
            ? MOST_HEAD_SIZE_OF_HOPPER
            : MOST_HEAD_SIZE;
    if (headSize < 1 || headSize % HEAD_SIZE_MULTIPLE != 0 || headSize > most) {
      return because(
          "headSize must be a multiple of %d up to %d but was %d"
              .formatted(HEAD_SIZE_MULTIPLE, most, headSize));
    }
    if (shift < 0 || window < 0 || (window > 0 && !causal)) {
      return because(
          "shift %d and window %d must be at least 0, and a window needs a causal mask"
              .formatted(shift, window));
    }
    if (sequences.arePacked()) {
      return !strides.equals(Strides.NONE)
          ? because("rows of packed sequences must have no gaps but are columns of wider ones")
          : shift > 0
              ? because("shift must be 0 for packed sequences but was %d".formatted(shift))
              : architecture < HOPPER || architecture >= BLACKWELL
                  ? because(
                      "packed sequences were tried on compute capability 9.0 only, found %s"
                          .formatted(Feature.capability(architecture)))
                  : Optional.empty();
    }
    return hasEmptyRow()
        ? because("row %d sees none of the %d keys".formatted(rows - 1, keys))
        : Optional.empty();
  }

  /// Returns whether a query row sees no key: cuDNN's statistics of such a row are wrong. With a
  /// window the last row sees the fewest.
  private boolean hasEmptyRow() {
    return window > 0 && (long) rows - 1 + shift - window + 1 >= keys;
  }

  private static Optional<String> because(String reason) {
    return Optional.of(reason);
  }

  /// Returns the same problem of several sequences, one after another.
  public AttentionProblem times(int count) {
    var all = new Sequences(count, count * rows, count * keys, true);
    return new AttentionProblem(
        type, heads, kvHeads, headSize, rows, keys, causal, shift, window, scale, all, strides);
  }

  /// Returns the same problem with other strides.
  public AttentionProblem with(Strides changed) {
    return new AttentionProblem(
        type, heads, kvHeads, headSize, rows, keys, causal, shift, window, scale, sequences,
        changed);
  }

  /// Returns whether causality leaves out any key. A window is only applied together with it.
  boolean masks() {
    return causal && (shift < keys - 1 || window > 0);
  }

  @Override
  public String toString() {
    return "attention of %s%d rows to %d keys in %s, %d heads of %d, %d of key and value%s%s"
        .formatted(
            sequences.count == 1
                ? ""
                : sequences.count
                    + (sequences.areEqual ? " sequences of " : " sequences of up to "),
            rows,
            keys,
            type,
            heads,
            headSize,
            kvHeads,
            causal ? ", causal from key " + shift : "",
            window > 0 ? ", window " + window : "");
  }
}
