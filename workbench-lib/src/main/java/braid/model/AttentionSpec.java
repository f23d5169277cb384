package braid.model;

import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// The problem: attention over one sequence whose tokens are divided among the ranks. It is
/// independent of the tuning; that is [ContextParallel].
///
/// Every rank holds the query, key and value of its tokens, by the [TokenLayout], and gets the
/// output and the log-sum-exp (LSE) of its tokens. A tensor has a row per token. A row of the query
/// and of the output has `heads` × `headSize` numbers, one of key and value `kvHeads` × `headSize`,
/// one of the LSE `heads` numbers in fp32. Query head h uses key and value head h / (`heads` /
/// `kvHeads`).
///
/// The result is that of this unfused code, for every tuning:
///
/// ```java
/// var keys = allGather(key);
/// var values = allGather(value);
/// for (query q at position p, each head) {
///   score[j] = scale * dot(q, keys[j]);       // of the positions j that p sees
///   lse = log(sum of exp(score[j]));
///   output = sum of exp(score[j] - lse) * values[j];
/// }
/// ```
///
/// A query sees all positions; if `isCausal`, its own and earlier ones; with a `window`, only the
/// last `window` of these. Scores, sums and statistics are in fp32 on every backend; the output is
/// rounded to `dtype` once.
///
/// @param sequence number of tokens of all ranks together
/// @param kvHeads number of heads of key and value, a divisor of `heads`
/// @param headSize numbers per token and head
/// @param isCausal true if a query sees no later position
/// @param window number of positions that a query sees, its own included; 0 for no limit
/// @param scale factor of the scores
/// @param dtype type of query, key, value and output
public record AttentionSpec(
    int sequence,
    int heads,
    int kvHeads,
    int headSize,
    boolean isCausal,
    int window,
    TokenLayout layout,
    float scale,
    DType dtype)
    implements Problem {
  public static final DType DEFAULT_DTYPE = DType.FP32;

  public static final TokenLayout DEFAULT_LAYOUT = TokenLayout.CONTIGUOUS;

  public AttentionSpec {
    positive("sequence", sequence);
    positive("heads", heads);
    positive("kvHeads", kvHeads);
    positive("headSize", headSize);
    if (heads % kvHeads != 0) {
      int nearest = kvHeads;
      while (nearest > heads || heads % nearest != 0) {
        nearest--;
      }
      throw new BraidException(
          "kvHeads must divide heads but were %d of %d; try kvHeads(%d)"
              .formatted(kvHeads, heads, nearest));
    }
    if (window < 0) {
      throw new BraidException(
          "window must be 1 or more positions, or 0 for no limit, but was %d".formatted(window));
    }
    if (window > 0 && !isCausal) {
      throw new BraidException(
          "a window counts back from each query, so it needs causal attention, but window is %d and causal is not set; call causal() before window(%d)"
              .formatted(window, window));
    }
    if (!(scale > 0) || Float.isInfinite(scale)) {
      throw new BraidException(
          "scale must be more than 0 and finite but was %s; leave it out for 1 / sqrt(headSize) = %s"
              .formatted(scale, defaultScale(headSize)));
    }
    if (dtype.isFp8() || dtype == DType.TF32) {
      throw new BraidException(
          "attention is in fp32, bf16 or fp16 but dtype was %s; try dtype(BF16)".formatted(dtype));
    }
  }

  /// Returns attention of every token to all tokens, with as many heads of key and value as of the
  /// query.
  public static AttentionSpec of(int sequence, int heads, int headSize) {
    positive("headSize", headSize);
    return new AttentionSpec(
        sequence,
        heads,
        heads,
        headSize,
        false,
        0,
        DEFAULT_LAYOUT,
        defaultScale(headSize),
        DEFAULT_DTYPE);
  }

  /// Sets the number of heads of key and value; each is shared by a group of query heads.
  public AttentionSpec kvHeads(int count) {
    return new AttentionSpec(
        sequence, heads, count, headSize, isCausal, window, layout, scale, dtype);
  }

  /// Lets a query see only its own and earlier positions.
  public AttentionSpec causal() {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, true, window, layout, scale, dtype);
  }

  /// Limits causal attention to the last `positions`, the query's own included. Ranks then exchange
  /// only the positions that a query sees.
  public AttentionSpec window(int positions) {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, isCausal, positions, layout, scale, dtype);
  }

  /// Sets the division of the tokens among the ranks.
  public AttentionSpec layout(TokenLayout other) {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, isCausal, window, other, scale, dtype);
  }

  /// Sets the factor of the scores; 1 / sqrt(`headSize`) by default.
  public AttentionSpec scale(float factor) {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, isCausal, window, layout, factor, dtype);
  }

  /// Sets the type of query, key, value and output. The LSE is FP32.
  public AttentionSpec dtype(DType other) {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, isCausal, window, layout, scale, other);
  }

  /// Returns the first position that a query at `position` sees.
  public long firstSeen(long position) {
    return window == 0 ? 0 : Math.max(0, position - window + 1);
  }

  /// Returns the last position that a query at `position` sees.
  public long lastSeen(long position) {
    return isCausal ? position : sequence - 1;
  }

  /// Returns the number of query heads that share a head of key and value.
  public int group() {
    return heads / kvHeads;
  }

  /// Returns the multiplications and additions of both products, for the positions that are seen.
  public double flops() {
    double pairs = 0;
    for (long position = 0; position < sequence; position++) {
      pairs += lastSeen(position) - firstSeen(position) + 1;
    }
    return 4.0 * pairs * heads * headSize;
  }

  @Override
  public SequencedMap<String, String> columns() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("pattern", "attention");
    columns.put("sequence", Integer.toString(sequence));
    columns.put("heads", Integer.toString(heads));
    if (kvHeads != heads) {
      columns.put("kv heads", Integer.toString(kvHeads));
    }
    columns.put("head size", Integer.toString(headSize));
    columns.put("dtype", dtype.toString());
    if (isCausal) {
      columns.put("causal", "true");
    }
    if (window > 0) {
      columns.put("window", Integer.toString(window));
    }
    columns.put("layout", layout.toString());
    if (scale != defaultScale(headSize)) {
      columns.put("scale", Float.toString(scale));
    }
    return columns;
  }

  private static float defaultScale(int headSize) {
    return (float) (1 / Math.sqrt(headSize));
  }

  private static void positive(String name, int value) {
    if (value < 1) {
      throw new BraidException(
          "%s must be 1 or more but was %d; give the size of the whole problem"
              .formatted(name, value));
    }
  }

  @Override
  public String toString() {
    var text = new StringBuilder("attention sequence=%d heads=%d".formatted(sequence, heads));
    if (kvHeads != heads) {
      text.append(" kvHeads=").append(kvHeads);
    }
    text.append(" headSize=").append(headSize).append(' ').append(dtype);
    if (isCausal) {
      text.append(" causal");
    }
    if (window > 0) {
      text.append(" window=").append(window);
    }
    text.append(' ').append(layout);
    if (scale != defaultScale(headSize)) {
      text.append(" scale=").append(scale);
    }
    return text.toString();
  }
}
