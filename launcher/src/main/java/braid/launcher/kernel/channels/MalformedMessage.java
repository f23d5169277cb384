package braid.launcher.kernel.channels;

/// A message that cannot be answered or is not a request; the text is the reason in one line.
public class MalformedMessage extends Exception {
  public MalformedMessage(String message) {
    super(message);
  }

  public MalformedMessage(String message, Throwable cause) {
    super(message, cause);
  }

  /// A message that was not signed with the kernel's key.
  static final class Forged extends MalformedMessage {
    Forged(String message) {
      super(message);
    }
  }
}
