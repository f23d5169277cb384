package braid.model;

/// A wait that was released because it could no longer end well: a member failed, died or never
/// came, or the user interrupted the cell. It is never the root cause; `waitedFor` says what this
/// rank was waiting for.
public final class GroupAborted extends BraidException {
  private final String waitedFor;

  private static final String BEFORE = "waited for ";
  private static final String AFTER = " and was released: ";

  public GroupAborted(String waitedFor, String reason) {
    super(BEFORE + waitedFor + AFTER + reason);
    this.waitedFor = waitedFor;
  }

  /// For example "all-gather `x`, chunk 3".
  public String waitedFor() {
    return waitedFor;
  }

  /// The same, from the message alone: all that is left of the exception in another process.
  public static String waitedFor(String message) {
    int end = message.indexOf(AFTER);
    return message.startsWith(BEFORE) && end > 0
        ? message.substring(BEFORE.length(), end)
        : message;
  }
}
