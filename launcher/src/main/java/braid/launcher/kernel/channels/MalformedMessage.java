package braid.launcher.kernel.channels;

/// What came is no message that can be answered, or not one that asks for anything; the text says
/// why, in one line.
public final class MalformedMessage extends Exception {
  public MalformedMessage(String message) {
    super(message);
  }

  public MalformedMessage(String message, Throwable cause) {
    super(message, cause);
  }
}
