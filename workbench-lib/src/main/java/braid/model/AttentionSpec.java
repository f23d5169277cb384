package braid.model;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.stream.LongStream;

/// The problem: attention over one sequence whose tokens are divided among the ranks. It is
/// independent of the tuning; that is [ContextParallel]. By default each token is a query, a key
/// and a value; `keys` or `packedKeys` give keys and values a number of their own, for
/// cross-attention and for chunks of a prompt. Tensors of keys and values then have a row per key.
///
/// Every rank holds the query, key and value of its tokens, by the [TokenLayout], and gets the
/// output and the log-sum-exp (LSE) of its tokens. A tensor has a row per token. A row of the query
/// and of the output has `heads` × `headSize` numbers, one of key and value `kvHeads` × `headSize`,
/// one of the LSE `heads` numbers in fp32. Query head h uses key and value head h / (`heads` /
/// `kvHeads`). Query, key and value may be columns of one tensor, as one GEMM writes them: see
/// [Fused].
///
/// The result equals this unfused code, for every tuning:
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
/// A query sees all positions; if `isCausal`, its own and earlier ones; with a `window`, only those
/// less than `window` positions away. If the tokens are several `packed` sequences, it sees
/// positions of its own sequence only; positions of padding see nothing and nobody sees them: their
/// output is 0 and their LSE −∞. If queries and keys of a sequence differ in number, the last query
/// has the position of the last key. Scores, sums and statistics are in fp32 on every backend. The
/// output is rounded to `dtype` once, except by cuDNN: it rounds the output of each block of keys,
/// and these are merged in fp32.
///
/// @param sequence number of tokens of all ranks together, which is that of the queries
/// @param kvHeads number of heads of key and value, a divisor of `heads`
/// @param headSize numbers per token and head
/// @param isCausal true if a query sees no later position
/// @param window number of positions that a query sees on a side, its own included; 0 for no limit
/// @param scale factor of the scores
/// @param dtype type of query, key, value and output
/// @param packing sequences that do not see each other, and padding, of queries and of keys; one
///   sequence by default
/// @param fused tensors whose columns are in one tensor; none by default
/// @param isRounded true if key and value are rounded to e4m3: see [#exchanged]
public record AttentionSpec(
    int sequence,
    int heads,
    int kvHeads,
    int headSize,
    boolean isCausal,
    int window,
    TokenLayout layout,
    float scale,
    DType dtype,
    Packing packing,
    Fused fused,
    boolean isRounded)
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
    if (!(scale > 0) || Float.isInfinite(scale)) {
      throw new BraidException(
          "scale must be more than 0 and finite but was %s; leave it out for 1 / sqrt(headSize) = %s"
              .formatted(scale, defaultScale(headSize)));
    }
    if (dtype.isFp8() || dtype == DType.TF32) {
      throw new BraidException(
          "attention is in fp32, bf16 or fp16 but dtype was %s; try dtype(BF16)".formatted(dtype));
    }
    var queries = packing.queries();
    if (queries.positions() != sequence) {
      throw new BraidException(
          "%s must end at the sequence of %d tokens but end at %d; try AttentionSpec.of(%d, %d, %d)"
              .formatted(
                  queries.padding() > 0 ? "padded offsets" : "cumulative lengths",
                  sequence,
                  queries.positions(),
                  queries.positions(),
                  heads,
                  headSize));
    }
    if (packing.sides().isPresent()) {
      checkSides(sequence, packing, isCausal, fused);
    }
  }

  private static void checkSides(int queries, Packing packing, boolean isCausal, Fused fused) {
    if (fused == Fused.QKV) {
      throw new BraidException(
          "fused qkv has a row for each token with query, key and value, but queries and keys differ in number: %d queries and %d keys; take fused(KV)"
              .formatted(queries, packing.keys().positions()));
    }
    for (int i = 0; i < packing.sequences() && isCausal; i++) {
      long rows = packing.end(i) - packing.firstQuery(i);
      long keys = packing.end(i) - packing.firstKey(i);
      if (rows > keys) {
        throw new BraidException(
            "causal attention aligns the last query with the last key, so each sequence must have as many keys as queries or more, but sequence %d has %d queries and %d keys; leave causal() out"
                .formatted(i, rows, keys));
      }
    }
  }

  /// Returns attention of every token to all tokens, with as many heads of key and value as of the
  /// query.
  public static AttentionSpec of(int sequence, int heads, int headSize) {
    positive("sequence", sequence);
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
        DEFAULT_DTYPE,
        Packing.single(sequence),
        Fused.NONE,
        false);
  }

  /// Returns the attention among the first tokens only, such as one that is quick to verify.
  public AttentionSpec first(int tokens) {
    return new AttentionSpec(
        tokens,
        heads,
        kvHeads,
        headSize,
        isCausal,
        window,
        layout,
        scale,
        dtype,
        packing.first(tokens),
        fused,
        isRounded);
  }

  /// Returns an attention of one sequence, causal if this one is masked.
  ///
  /// @param span number of positions that a query sees; 0 for no limit
  AttentionSpec causalBlock(long positions, long span) {
    int count = Math.toIntExact(positions);
    return new AttentionSpec(
        count,
        heads,
        kvHeads,
        headSize,
        isMasked(),
        (int) Math.min(span, Integer.MAX_VALUE),
        layout,
        scale,
        dtype,
        Packing.single(count),
        fused,
        isRounded);
  }

  /// Returns the same attention with other numbers of heads, such as the attention of some of the
  /// heads.
  public AttentionSpec heads(int count, int kvCount) {
    return new AttentionSpec(
        sequence, count, kvCount, headSize, isCausal, window, layout, scale, dtype, packing, fused,
        isRounded);
  }

  /// Sets the number of heads of key and value; each is shared by a group of query heads.
  public AttentionSpec kvHeads(int count) {
    return new AttentionSpec(
        sequence, heads, count, headSize, isCausal, window, layout, scale, dtype, packing, fused,
        isRounded);
  }

  /// Lets a query see only its own and earlier positions.
  public AttentionSpec causal() {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, true, window, layout, scale, dtype, packing, fused,
        isRounded);
  }

  /// Limits attention to keys less than `positions` away from the query: to both sides, or back if
  /// it is causal. Ranks then exchange only the positions that a query sees. FlashAttention's
  /// `window_size` is `(positions - 1, positions - 1)`, or `(positions - 1, 0)` if it is causal.
  public AttentionSpec window(int positions) {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, isCausal, positions, layout, scale, dtype, packing,
        fused, isRounded);
  }

  /// Sets the division of the tokens among the ranks.
  public AttentionSpec layout(TokenLayout other) {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, isCausal, window, other, scale, dtype, packing, fused,
        isRounded);
  }

  /// Sets the factor of the scores; 1 / sqrt(`headSize`) by default.
  public AttentionSpec scale(float factor) {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, isCausal, window, layout, factor, dtype, packing, fused,
        isRounded);
  }

  /// Sets the type of query, key, value and output. The LSE is FP32.
  public AttentionSpec dtype(DType other) {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, isCausal, window, layout, scale, other, packing, fused,
        isRounded);
  }

  /// Makes key and value, and the query too, columns of one tensor; so are their gradients.
  public AttentionSpec fused(Fused tensors) {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, isCausal, window, layout, scale, dtype, packing,
        tensors, isRounded);
  }

  /// Sets the type in which ranks exchange key and value: `dtype`, as by default, or FP8_E4M3,
  /// which has half of the bytes of a 16-bit type. This is another problem: key and value are
  /// rounded before the attention, the numbers of each row and head with a scale of their own.
  /// Those that stay on their rank are rounded too, so that the result does not depend on the
  /// tuning. The gradients are those of the rounded key and value; they are exchanged as they are.
  ///
  /// The scale is the least power of two of at least 2⁻¹⁰⁰ by which the largest number is at most
  /// 448, the largest of e4m3. So each number is rounded once, to 4 significant bits, or to a
  /// multiple of 2⁻⁹ of the scale. A NaN or infinity makes all numbers of its row and head NaN.
  public AttentionSpec exchanged(DType other) {
    if (other != dtype && other != DType.FP8_E4M3) {
      throw new BraidException(
          "key and value are exchanged in the attention's %s or in fp8_e4m3 but exchanged was %s; try exchanged(FP8_E4M3), or leave it out"
              .formatted(dtype, other));
    }
    return new AttentionSpec(
        sequence,
        heads,
        kvHeads,
        headSize,
        isCausal,
        window,
        layout,
        scale,
        dtype,
        packing,
        fused,
        other != dtype);
  }

  /// Returns the type in which ranks exchange key and value.
  public DType exchanged() {
    return isRounded ? DType.FP8_E4M3 : dtype;
  }

  /// Gives the sequence a number of keys and values of its own. The last query is at the position
  /// of the last key: if it is `causal`, query i of q sees the keys up to k - q + i of k, as
  /// chunked prefill needs it and FlashAttention does since version 2.1. Windows count from there
  /// too.
  public AttentionSpec keys(int count) {
    positive("keys", count);
    return packedKeys(Packing.single(count));
  }

  /// Gives each of the `packed` sequences a number of keys and values of its own, as [#keys] does:
  /// `cu_seqlens_k` beside the `cu_seqlens_q` of [#packed].
  ///
  /// @param cumulativeLengths 0 and the end of each sequence's keys; the last is the end of all
  public AttentionSpec packedKeys(int... cumulativeLengths) {
    return packedKeys(cumulativeLengths, cumulativeLengths);
  }

  /// Gives each of the `packed` sequences a number of keys of its own, with padding after them.
  ///
  /// @param cumulativeLengths 0 and the end of each sequence's keys, not counting padding
  /// @param paddedOffsets 0 and the key at which each sequence's padding ends
  public AttentionSpec packedKeys(int[] cumulativeLengths, int[] paddedOffsets) {
    return packedKeys(new Packing(list(cumulativeLengths), list(paddedOffsets)));
  }

  private AttentionSpec packedKeys(Packing keys) {
    return with(Packing.of(packing.queries(), keys));
  }

  /// Divides the tokens into sequences that do not see each other.
  ///
  /// @param cumulativeLengths 0 and the end of each sequence; the last is the end of all tokens
  public AttentionSpec packed(int... cumulativeLengths) {
    return packed(cumulativeLengths, cumulativeLengths);
  }

  /// Divides the tokens into sequences that do not see each other, each with padding after it.
  ///
  /// @param cumulativeLengths 0 and the end of each sequence, not counting padding
  /// @param paddedOffsets 0 and the position at which each sequence's padding ends; the last is the
  ///   end of all tokens
  public AttentionSpec packed(int[] cumulativeLengths, int[] paddedOffsets) {
    var queries = new Packing(list(cumulativeLengths), list(paddedOffsets));
    return with(packing.sides().isEmpty() ? queries : Packing.of(queries, packing.keys()));
  }

  /// Repeats the sequence: `count` sequences of as many tokens, one after another, which do not see
  /// each other. Each rank has its parts of each of them, by [TokenLayout#PER_SEQUENCE]; call
  /// [#layout] after this for another division.
  public AttentionSpec batch(int count) {
    positive("batch", count);
    if (!packing.isSingle()) {
      throw new BraidException(
          "batch repeats one sequence but there are %s; leave packed(...) out, or batch(%d)"
              .formatted(packing, count));
    }
    int longest = packing.positions();
    if ((long) longest * count > Integer.MAX_VALUE) {
      throw new BraidException(
          "a batch must have less than 2^31 tokens but has %d of %d; try batch(%d)"
              .formatted(count, longest, Integer.MAX_VALUE / longest));
    }
    return new AttentionSpec(
        count * sequence,
        heads,
        kvHeads,
        headSize,
        isCausal,
        window,
        TokenLayout.PER_SEQUENCE,
        scale,
        dtype,
        Packing.of(Packing.equal(count, sequence), Packing.equal(count, keys())),
        fused,
        isRounded);
  }

  private static List<Integer> list(int[] numbers) {
    return Arrays.stream(numbers).boxed().toList();
  }

  private AttentionSpec with(Packing other) {
    return new AttentionSpec(
        sequence, heads, kvHeads, headSize, isCausal, window, layout, scale, dtype, other, fused,
        isRounded);
  }

  /// Returns the number of keys and values of all ranks together.
  public int keys() {
    return packing.keys().positions();
  }

  /// Returns the number of positions: of tokens, or of the longer of queries and keys of each
  /// sequence. See [Packing].
  public int positions() {
    return packing.positions();
  }

  /// Returns the first position that a query at `position` sees. It never falls as the position
  /// rises; for one that sees nothing, such as padding, it is after [#lastSeen].
  public long firstSeen(long position) {
    int index = packing.at(position);
    if (position >= packing.end(index)) {
      return packing.padded().get(index + 1);
    }
    return Math.max(packing.firstKey(index), span() == 0 ? 0 : position + ahead() - span() + 1);
  }

  /// Returns whether a query sees some positions of its sequence only.
  public boolean isMasked() {
    return isCausal || window > 0;
  }

  /// Returns the number of positions after its own that a query sees, if there is a mask: a window
  /// to both sides is a causal one of [#span] positions from the last of these.
  public int ahead() {
    return isCausal || window == 0 ? 0 : Math.min(window, positions()) - 1;
  }

  /// Returns the number of consecutive positions that a query sees; 0 for no limit.
  public int span() {
    return window == 0 ? 0 : Math.min(window, positions()) + ahead();
  }

  /// Returns the last position that a query at `position` sees. It never falls as the position
  /// rises.
  public long lastSeen(long position) {
    long last = packing.end(packing.at(position)) - 1;
    return isMasked() ? Math.min(position + ahead(), last) : last;
  }

  /// Returns whether a query sees nothing, such as padding.
  public boolean seesNothing(long position) {
    return firstSeen(position) > lastSeen(position);
  }

  /// Returns whether no query sees a key, such as padding.
  public boolean isUnseen(long position) {
    return firstSeeing(position) > lastSeeing(position);
  }

  /// Returns whether a position is padding.
  public boolean isPadding(long position) {
    return position >= packing.end(packing.at(position));
  }

  /// Returns the first position whose query sees `position`, or a later one; for one that nobody
  /// sees, such as padding, it is after [#lastSeeing].
  public long firstSeeing(long position) {
    int index = packing.at(position);
    if (position >= packing.end(index)) {
      return packing.padded().get(index + 1);
    }
    long first = packing.firstQuery(index);
    return isMasked() ? Math.max(first, position - ahead()) : first;
  }

  /// Returns the last position whose query sees `position`.
  public long lastSeeing(long position) {
    long end = packing.end(packing.at(position));
    return (window == 0 ? end : Math.min(end, position - ahead() + span())) - 1;
  }

  /// Returns the first position after `position` from which on queries may see nothing, or keys may
  /// not be seen, unlike those before.
  long border(long position) {
    if (packing.sides().isEmpty()) {
      return isPadding(position) ? packing.skipPadding(position) : packing.nextPadding(position);
    }
    int index = packing.at(position);
    long end = packing.end(index);
    return LongStream.of(
            firstSeen(packing.firstQuery(index)),
            firstSeeing(packing.firstKey(index)),
            end,
            packing.padded().get(index + 1))
        .filter(each -> each > position)
        .min()
        .orElseThrow();
  }

  /// Returns the problem of the backward pass.
  public AttentionGradientSpec backward() {
    return new AttentionGradientSpec(this, false);
  }

  /// Returns the number of query heads that share a head of key and value.
  public int group() {
    return heads / kvHeads;
  }

  /// Returns the multiplications and additions of both products, for the positions that are seen.
  public double flops() {
    return 4.0 * pairs(0, positions(), 0, positions()) * heads * headSize;
  }

  /// Returns the number of pairs of a query and a key that it sees, of queries and keys at
  /// consecutive positions. The time it takes is proportional to the sequences of these queries.
  public double pairs(long queries, long endOfQueries, long keys, long endOfKeys) {
    double pairs = 0;
    int index = packing.at(queries);
    for (; index < packing.sequences() && packing.start(index) < endOfQueries; index++) {
      long query = Math.max(queries, packing.firstQuery(index));
      long endOfQuery = Math.min(endOfQueries, packing.end(index));
      long key = Math.max(keys, packing.firstKey(index));
      long count = Math.min(endOfKeys, packing.end(index)) - key;
      if (endOfQuery <= query || count <= 0) {
        continue;
      }
      if (isMasked()) {
        long from = query + ahead() - key;
        long end = endOfQuery + ahead() - key;
        pairs += upTo(from, end, count);
        pairs -= window == 0 ? 0 : upTo(from - span(), end - span(), count);
      } else {
        pairs += (double) (endOfQuery - query) * count;
      }
    }
    return pairs;
  }

  /// Returns the number of keys 0..i, of `count` keys, summed over all i from `first` to before
  /// `end`.
  private static double upTo(long first, long end, long count) {
    return before(end, count) - before(first, count);
  }

  private static double before(long end, long count) {
    long rising = Math.clamp(end, 0, count);
    return rising * (rising + 1) / 2.0 + (double) Math.max(0, end - count) * count;
  }

  @Override
  public SequencedMap<String, String> columns() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("pattern", "attention");
    columns.put("sequence", Integer.toString(sequence));
    if (packing.sides().isPresent()) {
      columns.put("keys", Integer.toString(keys()));
    }
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
    if (!packing.isSingle()) {
      columns.put("packed", packing.queries().toString());
      packing.sides().ifPresent(sides -> columns.put("packed keys", sides.keys().toString()));
    }
    columns.put("layout", layout.toString());
    if (scale != defaultScale(headSize)) {
      columns.put("scale", Float.toString(scale));
    }
    if (fused != Fused.NONE) {
      columns.put("fused", fused.toString());
    }
    if (isRounded) {
      columns.put("exchanged", exchanged().toString());
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
    var text = new StringBuilder("attention sequence=").append(sequence);
    if (packing.sides().isPresent()) {
      text.append(" keys=").append(keys());
    }
    text.append(" heads=").append(heads);
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
    if (!packing.isSingle()) {
      text.append(" packed=").append(packing.queries());
      packing.sides().ifPresent(sides -> text.append(" packedKeys=").append(sides.keys()));
    }
    text.append(' ').append(layout);
    if (scale != defaultScale(headSize)) {
      text.append(" scale=").append(scale);
    }
    if (fused != Fused.NONE) {
      text.append(" fused=").append(fused);
    }
    if (isRounded) {
      text.append(" exchanged=").append(exchanged());
    }
    return text.toString();
  }
}
