package braid.natives.load;

/// A native library that is needed and cannot be had: one line with where was looked and what
/// helps.
public final class BraidNativeMissing extends RuntimeException {
  public BraidNativeMissing(String message) {
    super(message);
  }
}
