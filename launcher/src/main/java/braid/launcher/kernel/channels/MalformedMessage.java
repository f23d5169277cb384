package braid.launcher.kernel.channels;

/// A message that cannot be answered or is not a request; the text is the reason in one line.
public final class MalformedMessage extends Exception {
  public MalformedMessage(String message) {
    super(message);
  }

  public MalformedMessage(String message, Throwable cause) {
    super(message, cause);
  }
}
