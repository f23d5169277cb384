package braid;

import braid.model.VerificationFailed;

/// A pipeline, an attention or the backward pass of one, as a link of a [Chain]. To pass data, two
/// links are bound to the same tensor of the caller.
public sealed interface ChainLink extends AutoCloseable
    permits Pipeline, Attention, AttentionGradient {
  ProcessGroup group();

  /// Runs once and compares the results with a reference.
  ///
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  void verify();

  @Override
  void close();
}
