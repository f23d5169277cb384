package braid.launcher.notebook.run;

/// Hears how a run goes, from the thread that runs it.
public interface RunProgress extends AutoCloseable {
  /// @param cells how many are to be run
  void started(int cells, int ranks);

  void cellStarted(String name, String firstLine);

  /// Long work of the running cell reports how far it is, in one line; several times a second.
  void cellProgressed(String line);

  void cellFinished(CellResult cell);

  /// Nothing more is to come. Twice is harmless.
  @Override
  void close();
}
