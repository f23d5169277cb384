package braid;

/// A wait that was released because it could no longer end well: a member failed, died or never
/// came, or the user interrupted the cell. It is never the root cause; `waitedFor` says what this
/// rank was waiting for.
public final class GroupAborted extends BraidException {
  private final String waitedFor;

  public GroupAborted(String waitedFor, String reason) {
    super("waited for " + waitedFor + " and was released: " + reason);
    this.waitedFor = waitedFor;
  }

  /// For example "all-gather `x`, chunk 3".
  public String waitedFor() {
    return waitedFor;
  }
}
