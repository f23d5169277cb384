package braid.model;

/// An error that the caller can fix. The message is one line: name, rule, actual value, remedy.
public class BraidException extends RuntimeException {
  public BraidException(String message) {
    super(message);
  }

  public BraidException(String message, Throwable cause) {
    super(message, cause);
  }
}
