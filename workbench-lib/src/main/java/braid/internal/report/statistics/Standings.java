package braid.internal.report.statistics;

import braid.model.Estimate;
import braid.model.Overlap;
import braid.model.Spread;
import java.util.List;
import java.util.SequencedSet;

/// What a study found, as far as its table and its charts show it: they take this rather than the
/// study, which makes them.
///
/// @param finding the finding in a few words
/// @param setting what was tuned where
/// @param basis how the numbers came about
/// @param varying the settings in which the configurations differ
/// @param unfused times of the reference
/// @param unfusedConditions what the hardware was at then
/// @param unfusedIsBest whether no configuration beats the reference
public record Standings(
    String finding,
    String setting,
    String basis,
    SequencedSet<String> varying,
    Spread unfused,
    Conditions unfusedConditions,
    boolean unfusedIsBest,
    List<Standing> configurations) {

  /// How one configuration did.
  ///
  /// @param saved the share of the unfused time that it saves
  public record Standing(
      Overlap overlap, Spread time, Estimate saved, Verdict verdict, Conditions conditions) {}

  /// How a configuration compares with the best.
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
