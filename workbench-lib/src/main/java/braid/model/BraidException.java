package braid.model;

/// Something the caller can mend. The message is one line: name, rule, actual value, remedy.
public class BraidException extends RuntimeException {
  public BraidException(String message) {
    super(message);
  }

  public BraidException(String message, Throwable cause) {
    super(message, cause);
  }
}
