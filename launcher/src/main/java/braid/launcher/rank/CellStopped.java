package braid.launcher.rank;

/// Thrown into a cell that is being stopped. An `Error`, so that a cell's `catch (Exception e)`
/// does not keep it going.
public final class CellStopped extends Error {
  private static final long serialVersionUID = 1;

  public CellStopped() {
    super("stopped");
  }
}
