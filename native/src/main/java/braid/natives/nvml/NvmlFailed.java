package braid.natives.nvml;

/// Why the driver's library could not be asked, in one line. Checked, because a machine without a
/// GPU is an ordinary one.
public final class NvmlFailed extends Exception {
  private static final long serialVersionUID = 1;

  NvmlFailed(String message) {
    super(message);
  }

  /// The line itself.
  public String line() {
    return String.valueOf(getMessage());
  }
}
