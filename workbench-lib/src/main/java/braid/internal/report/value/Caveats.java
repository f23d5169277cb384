package braid.internal.report.value;

import braid.model.BackendKind;
import java.util.Map;
import java.util.Optional;

/// Limits of what the times of a run show, by the columns of its problem or configuration.
///
/// Ranks that share a GPU run in turns, so their times show order and correctness only. The backend
/// of such a run writes a column, which every table, chart and export then carries; runs without
/// the column had a device per rank.
public final class Caveats {
  /// Column of runs whose times are no evidence; its value is [#SHARED].
  public static final String COLUMN = "times";

  /// Column of the device: a GPU's name, or processor and cores of a host. Labels leave it out.
  public static final String DEVICE = "device";

  /// Column of the number of hosts, if it is more than one.
  public static final String HOSTS = "hosts";

  public static final String SHARED = "ranks share a GPU: order and correctness only";

  private Caveats() {}

  /// Adds the device, the number of hosts, and the column of times that are no evidence if ranks
  /// share a device.
  public static void put(
      String device, int ranksPerDevice, int hosts, Map<String, String> columns) {
    columns.put(DEVICE, device);
    putHosts(hosts, columns);
    put(ranksPerDevice, columns);
  }

  /// Adds the column of hosts if there are several.
  public static void putHosts(int hosts, Map<String, String> columns) {
    if (hosts > 1) {
      columns.put(HOSTS, Integer.toString(hosts));
    }
  }

  /// Adds the column if ranks share a device.
  public static void put(int ranksPerDevice, Map<String, String> columns) {
    if (ranksPerDevice != 1) {
      columns.put(COLUMN, SHARED);
    }
  }

  /// Returns true if the times may be compared and judged.
  public static boolean timesCount(Map<String, String> columns) {
    return !columns.containsKey(COLUMN);
  }

  /// Returns the note on a run of one rank, with a remedy; empty for several ranks.
  public static Optional<String> oneRank(Map<String, String> columns, int ranks) {
    if (ranks != 1) {
      return Optional.empty();
    }
    boolean onGpu = BackendKind.CUDA.toString().equals(columns.get("backend"));
    return Optional.of(
        "one rank has nothing to communicate; try %s, or predict on a described machine"
            .formatted(onGpu ? "-n 4 --share-gpus, -n 4 --backend host" : "-n 4"));
  }
}
