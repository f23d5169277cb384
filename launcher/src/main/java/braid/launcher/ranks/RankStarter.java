package braid.launcher.ranks;

import java.io.IOException;
import java.util.List;
import java.util.Map;

/// Starts the processes of ranks, on this host or on others.
public interface RankStarter {
  /// Data for the ranks of one start.
  ///
  /// @param frontPort port of this host's loopback interface to which the ranks connect
  /// @param environment variables of all ranks, beside those of a rank's host and its place
  record Start(
      int count, RankKind kind, int frontPort, String token, Map<String, String> environment) {
    public Start {
      environment = Map.copyOf(environment);
    }
  }

  /// Prepares a start: waits for the hosts that it needs.
  void prepare(int count);

  /// Starts the process of one rank. Another host's process is a [RemoteProcess].
  Process start(Start start, int rank) throws IOException;

  /// Returns the name of the launcher, for manifests: "local".
  String description();

  /// Returns the options by which a command chooses this starter; none for [LocalRanks].
  List<String> options();
}
