package braid.internal.report.statistics;

import braid.model.Estimate;
import braid.model.Overlap;
import braid.model.Spread;
import java.util.List;
import java.util.SequencedSet;

/// Configurations of a study with their verdicts, for its table and charts, which must not depend
/// on the study itself.
///
/// @param finding finding in a few words
/// @param setting problem and machine
/// @param basis method of measurement
/// @param varying settings in which the configurations differ
/// @param unfused times of the reference
/// @param unfusedConditions state of the hardware during the reference
/// @param unfusedIsBest true if no configuration beats the reference
public record RankedConfigurations(
    String finding,
    String setting,
    String basis,
    SequencedSet<String> varying,
    Spread unfused,
    Conditions unfusedConditions,
    boolean unfusedIsBest,
    List<RankedConfiguration> configurations) {

  /// One configuration with its verdict.
  ///
  /// @param saved share of the unfused time that it saves
  public record RankedConfiguration(
      Overlap overlap, Spread time, Estimate saved, Verdict verdict, Conditions conditions) {}

  /// Verdict on a configuration against the best.
  public enum Verdict {
    BEST("best"),
    TIED("ties with best"),
    SLOWER("slower");

    private final String words;

    Verdict(String words) {
      this.words = words;
    }

    @Override
    public String toString() {
      return words;
    }
  }
}
