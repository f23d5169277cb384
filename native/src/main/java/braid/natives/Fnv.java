package braid.natives;

/// FNV-1a of a text, 64 bits wide, so that two different texts of a run do not meet. It needs no
/// object and no provider.
public final class Fnv {
  private static final long BASIS = 0xcbf29ce484222325L;
  private static final long PRIME = 0x100000001b3L;

  private Fnv() {}

  public static long hash(String text) {
    long hash = BASIS;
    for (int i = 0; i < text.length(); i++) {
      hash = (hash ^ text.charAt(i)) * PRIME;
    }
    return hash;
  }
}
