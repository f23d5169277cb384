package braid.shapes;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;

/// Numbers of tokens of sequences that are packed one after another, as a data loader delivers
/// them:
///
/// ```java
/// var lengths = Lengths.of(900, 300, 2500, 41);     // or of(Path.of("lengths.txt")), logNormal(...)
/// var spec = lengths.attention(32, 128).kvHeads(8).causal().dtype(BF16);
/// Balance.of(spec, 8).on(Machine.h100x8())          // what each division costs, before anything runs
/// ```
public record Lengths(List<Integer> tokens) {
  private static final int SHOWN = 8;

  public Lengths {
    tokens = List.copyOf(tokens);
    if (tokens.isEmpty()) {
      throw new BraidException(
          "lengths must be 1 or more but there are none; give one per sequence");
    }
    long total = 0;
    for (int i = 0; i < tokens.size(); i++) {
      if (tokens.get(i) < 1) {
        throw new BraidException(
            "each length must be 1 or more tokens but number %d is %d; leave empty sequences out"
                .formatted(i, tokens.get(i)));
      }
      total += tokens.get(i);
    }
    if (total > Integer.MAX_VALUE) {
      throw new BraidException(
          "lengths must add up to less than 2^31 tokens but are %d; give those of one batch"
              .formatted(total));
    }
  }

  public static Lengths of(int... tokens) {
    return new Lengths(Arrays.stream(tokens).boxed().toList());
  }

  /// Reads lengths from a text file: numbers between spaces, commas, brackets or ends of lines, so
  /// also an array in JSON.
  public static Lengths of(Path file) {
    String text;
    try {
      text = Files.readString(file);
    } catch (IOException e) {
      throw new BraidException(
          "lengths must be in a text file but %s cannot be read: %s".formatted(file, e), e);
    }
    var tokens = new ArrayList<Integer>();
    for (var word : text.split("[\\s,\\[\\]]+", -1)) {
      if (!word.isEmpty()) {
        tokens.add(number(file, word));
      }
    }
    return new Lengths(tokens);
  }

  private static int number(Path file, String word) {
    try {
      return Integer.parseInt(word);
    } catch (NumberFormatException e) {
      throw new BraidException(
          "%s must have whole numbers between spaces, commas or brackets but has `%s`"
              .formatted(file, word),
          e);
    }
  }

  /// Returns the lengths between cumulative ones, the `cu_seqlens` of training code; equal ones are
  /// empty sequences, which are left out.
  public static Lengths cumulative(int... ends) {
    var tokens = new ArrayList<Integer>();
    for (int i = 1; i < ends.length; i++) {
      if (ends[0] != 0 || ends[i] < ends[i - 1]) {
        throw new BraidException(
            "cumulative lengths must begin at 0 and not fall but were %s; for example 0, 5, 12"
                .formatted(Arrays.toString(ends)));
      }
      if (ends[i] > ends[i - 1]) {
        tokens.add(ends[i] - ends[i - 1]);
      }
    }
    return new Lengths(tokens);
  }

  /// Draws lengths until a batch is full; the last one is cut. The logarithm of a length is
  /// normally distributed.
  ///
  /// @param total tokens of the batch
  /// @param median median length
  /// @param sigma standard deviation of the natural logarithm: 0 for equal lengths, 1 for a sixth
  ///   of the sequences longer than 2.7 medians
  public static Lengths logNormal(int total, double median, double sigma, long seed) {
    if (total < 1 || !(median >= 1) || !(sigma >= 0) || Double.isInfinite(median + sigma)) {
      throw new BraidException(
          "total and median must be 1 or more and sigma 0 or more but were %d, %s and %s; try logNormal(32768, 800, 1.0, 7)"
              .formatted(total, median, sigma));
    }
    var random = new Random(seed);
    var tokens = new ArrayList<Integer>();
    for (int left = total; left > 0; left -= tokens.getLast()) {
      double drawn = Math.rint(median * Math.exp(sigma * random.nextGaussian()));
      tokens.add((int) Math.clamp(drawn, 1, left));
    }
    return new Lengths(tokens);
  }

  /// Returns the number of tokens of all sequences.
  public int total() {
    return tokens.stream().mapToInt(Integer::intValue).sum();
  }

  /// Returns attention within each of the sequences, as [AttentionSpec#of] and
  /// [AttentionSpec#packed] do.
  public AttentionSpec attention(int heads, int headSize) {
    return AttentionSpec.of(total(), heads, headSize).packed(ends());
  }

  /// Returns cumulative lengths: 0 and the end of each sequence, as [AttentionSpec#packedKeys]
  /// takes those of keys.
  public int[] ends() {
    var ends = new int[tokens.size() + 1];
    for (int i = 0; i < tokens.size(); i++) {
      ends[i + 1] = ends[i] + tokens.get(i);
    }
    return ends;
  }

  @Override
  public String toString() {
    return "%d sequences of %d tokens: %s%s"
        .formatted(
            tokens.size(),
            total(),
            tokens.stream().limit(SHOWN).map(String::valueOf).collect(Collectors.joining(", ")),
            tokens.size() > SHOWN ? ", …" : "");
  }
}
