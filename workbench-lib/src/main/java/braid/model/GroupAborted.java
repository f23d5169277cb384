package braid.model;

/// A wait that was released because it could no longer succeed: a member failed, died or never
/// arrived, or the user interrupted the cell. It is never the root cause; `waitedFor` names the
/// awaited step.
public final class GroupAborted extends BraidException {
  private final String waitedFor;

  private static final String BEFORE = "waited for ";
  private static final String AFTER = " and was released: ";

  public GroupAborted(String waitedFor, String reason) {
    super(BEFORE + waitedFor + AFTER + reason);
    this.waitedFor = waitedFor;
  }

  /// Returns the awaited step, for example "all-gather `x`, chunk 3".
  public String waitedFor() {
    return waitedFor;
  }

  /// Returns the awaited step from the message, which is all that another process receives of the
  /// exception.
  public static String waitedFor(String message) {
    int end = message.indexOf(AFTER);
    return message.startsWith(BEFORE) && end > 0
        ? message.substring(BEFORE.length(), end)
        : message;
  }
}
