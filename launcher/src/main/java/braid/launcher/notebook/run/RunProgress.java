package braid.launcher.notebook.run;

/// Receives the progress of a run, from several threads.
public interface RunProgress extends AutoCloseable {
  /// @param cells number of cells to run
  void started(int cells, int ranks);

  void cellStarted(String name, String firstLine);

  /// Long work of the running cell reports how far it is, in one line; several times a second.
  void cellProgressed(String line);

  /// A line about the ranks of the running cell, such as one that does not answer. It is part of
  /// what the cell prints, too.
  void cellNoted(String line);

  /// Text that the running cell prints or shows, as it arrives.
  default void cellPrinted(String text) {}

  void cellFinished(CellResult cell);

  /// Ends the progress. Further calls have no effect.
  @Override
  void close();
}
