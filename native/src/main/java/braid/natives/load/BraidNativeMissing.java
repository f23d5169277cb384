package braid.natives.load;

/// A required native library is unavailable. The message is one line with the searched places and a
/// remedy.
public final class BraidNativeMissing extends RuntimeException {
  public BraidNativeMissing(String message) {
    super(message);
  }
}
