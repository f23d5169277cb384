package braid.model;

import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// The problem of attention's backward pass: the gradients of query, key and value of an attention
/// over a divided sequence, from the gradient of its output.
///
/// Every rank holds query, key, value, output and log-sum-exp (LSE) of its tokens, and the gradient
/// of the output, in the layout and types of the attention. It gets the gradients of the query, key
/// and value of its tokens.
///
/// The result equals this unfused code, for every tuning:
///
/// ```java
/// for (query q at position p, each head, each position j that p sees) {
///   weight = exp(scale * dot(q, keys[j]) - lse);
///   change = dot(outputGradient, values[j]) - dot(outputGradient, output);
///   queryGradient     += weight * change * scale * keys[j];
///   keyGradients[j]   += weight * change * scale * q;
///   valueGradients[j] += weight * outputGradient;
/// }
/// ```
///
/// Products and sums are in fp32 on every backend. A gradient is rounded to `forward.dtype()` once,
/// except by cuDNN: it rounds the gradients of each block of keys, and these are added in fp32.
///
/// @param forward the attention
/// @param isDeterministic true if the gradients of equal inputs are equal to the last bit in every
///   run. That costs time and memory by cuDNN only; everything else is always deterministic.
public record AttentionGradientSpec(AttentionSpec forward, boolean isDeterministic)
    implements Problem {
  /// Returns this problem with equal bits in every run.
  public AttentionGradientSpec deterministic() {
    return new AttentionGradientSpec(forward, true);
  }

  /// Returns the type of the inputs and of the gradients; the LSE is FP32.
  @Override
  public DType dtype() {
    return forward.dtype();
  }

  /// Returns the multiplications and additions of the five products, for the positions that are
  /// seen.
  public double flops() {
    return forward.flops() * 5 / 2;
  }

  @Override
  public SequencedMap<String, String> columns() {
    var columns = new LinkedHashMap<>(forward.columns());
    columns.put("pattern", "attention backward");
    if (isDeterministic) {
      columns.put("deterministic", "true");
    }
    return columns;
  }

  @Override
  public String toString() {
    return (isDeterministic ? "deterministic backward of " : "backward of ") + forward;
  }
}
