package braid.evidence;

import braid.model.Displayable;
import java.util.SequencedMap;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.Table;

/// Something measured that can be saved by [Runs] and looked at again where there are no ranks.
public sealed interface Evidence extends Displayable permits ProfileSet, Study {
  /// What was found, in one line.
  String headline();

  /// Every table there is, by name.
  SequencedMap<String, Table> tables();

  /// Every chart there is, by name.
  SequencedMap<String, JFreeChart> charts();
}
