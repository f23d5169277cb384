package braid.launcher.editing;

/// Completeness of a cell; `indent` is the indentation of its next line.
public record Completeness(Status status, String indent) {
  public enum Status {
    COMPLETE,
    INCOMPLETE,
    INVALID
  }
}
