package braid.launcher.notebook;

/// Hears how a run goes, from the thread that runs it.
public interface RunProgress {
  /// @param cells how many are to be run
  void started(int cells, int ranks);

  void cellStarted(String name, String firstLine);

  void cellFinished(CellRun cell);

  void finished(RunResult result);
}
