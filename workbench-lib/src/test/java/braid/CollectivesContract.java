package braid;

import braid.internal.selftest.CollectiveCase;
import braid.internal.selftest.Sweep;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The contract of every collective, on ranks of every kind.
abstract class CollectivesContract {
  /// Checks all cases on a number of ranks.
  abstract void check(int ranks, List<CollectiveCase> cases) throws Exception;

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void everyCollectiveInEveryTypeWayAndSize(int ranks) throws Exception {
    var all = CollectiveCase.supported(CollectiveCase.table(), Capabilities.hostCollectives());
    check(ranks, Sweep.oneOf(4, all));
  }
}
