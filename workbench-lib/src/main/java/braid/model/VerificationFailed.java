package braid.model;

/// A pipeline's result is not the unfused reference's. `braid run` exits with 3 for it.
public final class VerificationFailed extends BraidException {
  public VerificationFailed(String message) {
    super(message);
  }
}
