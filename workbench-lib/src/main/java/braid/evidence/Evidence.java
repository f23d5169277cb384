package braid.evidence;

import braid.model.Displayable;
import braid.model.MimeBundle;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.Table;

/// A measurement that [Runs] can save and show again without ranks.
public sealed interface Evidence extends Displayable permits ProfileSet, Study {
  /// Returns false if ranks shared a GPU: the times show order and correctness only, and no verdict
  /// is given.
  boolean timesCount();

  /// Returns the errors of numbers that no machine can reach, by name ([SpeedLimits]); empty if all
  /// are possible.
  List<String> faults();

  /// Returns the finding in one line; faults come first.
  String headline();

  /// Returns all tables, by name.
  SequencedMap<String, Table> tables();

  /// Returns all charts, by name.
  SequencedMap<String, JFreeChart> charts();

  /// Returns the display of several measurements: what the time of the latest profile of each
  /// configuration was spent on, and the findings of all studies.
  static MimeBundle overview(List<? extends Evidence> measured) {
    var studies = measured.stream().filter(Study.class::isInstance).map(Evidence::headline);
    var sets = new LinkedHashMap<SequencedMap<String, String>, ProfileSet>();
    for (var evidence : measured) {
      if (evidence instanceof ProfileSet set) {
        sets.put(set.configuration(), set);
      }
    }
    return ProfileSet.overview(List.copyOf(sets.values()), studies.toList());
  }
}
