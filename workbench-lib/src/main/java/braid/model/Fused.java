package braid.model;

import java.util.Locale;

/// Tensors of an attention whose columns are in one tensor. A row of it has the columns of a token,
/// as one GEMM writes them: heads × headSize numbers of the query, if it is among them, then
/// kvHeads × headSize of the key, then as many of the value. Their gradients are in one tensor of
/// the same columns, from which one GEMM computes the gradient of the weight.
public enum Fused {
  /// Query, key and value are a tensor each.
  NONE,
  /// One tensor of columns [key | value].
  KV,
  /// One tensor of columns [query | key | value].
  QKV;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
