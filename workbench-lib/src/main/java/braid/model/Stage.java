package braid.model;

/// Kinds of work of a span.
public enum Stage {
  /// Multiplying.
  GEMM(0x0072B2),
  /// Attending: scores, softmax and weighted sum, their gradients, and merging of parts.
  ATTENTION(0x56A0D3),
  /// Moving bytes between ranks.
  COPY(0xE69F00),
  /// Adding the parts of several ranks.
  REDUCE(0x6A4C93),
  /// Moving bytes within one rank's memory: no link takes part, so it is not communication.
  LOCAL(0x8C6D46),
  /// Waiting for a signal or another rank.
  WAIT(0xB8C0C9),
  /// Signalling another rank.
  SIGNAL(0xB0306A);

  private final int rgb;

  Stage(int rgb) {
    this.rgb = rgb;
  }

  /// Returns its color in every drawing, as 0xRRGGBB.
  public int rgb() {
    return rgb;
  }
}
