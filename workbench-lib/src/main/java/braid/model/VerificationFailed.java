package braid.model;

/// A pipeline's result differs from the unfused reference. `braid run` exits with 3 for it.
public final class VerificationFailed extends BraidException {
  public VerificationFailed(String message) {
    super(message);
  }
}
