package braid.launcher.notebook.run;

/// Receives the progress of a run, from several threads; what is not overridden is ignored.
public interface RunProgress extends AutoCloseable {
  /// @param cells number of cells to run
  default void started(int cells, int ranks) {}

  default void cellStarted(String name, String firstLine) {}

  /// Long work of the running cell reports how far it is, in one line; several times a second.
  default void cellProgressed(String line) {}

  /// A line about the ranks of the running cell, such as one that does not answer. It is part of
  /// what the cell prints, too.
  default void cellNoted(String line) {}

  /// The running cell has measured something, with the result in a line.
  default void cellMeasured(String line) {}

  /// Text that the running cell prints or shows, as it arrives.
  default void cellPrinted(String text) {}

  default void cellFinished(CellResult cell) {}

  /// Ends the progress. Further calls have no effect.
  @Override
  default void close() {}
}
