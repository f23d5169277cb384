package braid.natives.ucx;

/// A failed call of UCX.
public final class UcxError extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String status;

  UcxError(String call, String status) {
    super("%s failed: %s".formatted(call, status));
    this.status = status;
  }

  /// Returns UCX's own words: "Connection reset by remote peer".
  public String status() {
    return status;
  }
}
