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

  public static final String SHARED = "ranks share a GPU: order and correctness only";

  private Caveats() {}

  /// Adds the device, and the column of times that are no evidence if ranks share it.
  public static void put(String device, int ranksPerDevice, Map<String, String> columns) {
    columns.put(DEVICE, device);
    put(ranksPerDevice, columns);
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
