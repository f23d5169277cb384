package braid.launcher.editing;

/// Whether a cell can be run as it stands; `indent` is what the next line should begin with.
public record Completeness(Status status, String indent) {
  public enum Status {
    COMPLETE,
    INCOMPLETE,
    INVALID
  }
}
