package braid.launcher.rank;

/// Stops a cell. An `Error`, so that a cell's `catch (Exception e)` does not swallow it.
public final class CellStopped extends Error {
  private static final long serialVersionUID = 1;

  public CellStopped() {
    super("stopped");
  }
}
