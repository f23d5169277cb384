package braid.evidence;

import braid.model.Displayable;
import java.util.SequencedMap;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.Table;

/// A measurement that [Runs] can save and show again without ranks.
public sealed interface Evidence extends Displayable permits ProfileSet, Study {
  /// Returns the finding in one line.
  String headline();

  /// Returns all tables, by name.
  SequencedMap<String, Table> tables();

  /// Returns all charts, by name.
  SequencedMap<String, JFreeChart> charts();
}
