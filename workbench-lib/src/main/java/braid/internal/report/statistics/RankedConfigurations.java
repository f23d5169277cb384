package braid.internal.report.statistics;

import braid.internal.report.value.Caveats;
import braid.model.Configuration;
import braid.model.Estimate;
import braid.model.Overlap;
import braid.model.Spread;
import java.util.List;
import java.util.OptionalDouble;
import java.util.SequencedSet;

/// Configurations of a study with their verdicts, for its table and charts, which must not depend
/// on the study itself.
///
/// @param finding finding in a few words
/// @param setting problem and machine
/// @param basis method of measurement
/// @param varying settings in which the configurations differ
/// @param reference the reference, by default [Overlap#unfused]
/// @param unfused times of the reference
/// @param unfusedConditions state of the hardware during the reference
/// @param unfusedIsBest true if no configuration beats the reference
/// @param unfusedPredictedNanos predicted time of the reference
public record RankedConfigurations(
    String finding,
    String setting,
    String basis,
    SequencedSet<String> varying,
    Configuration reference,
    Spread unfused,
    Conditions unfusedConditions,
    boolean unfusedIsBest,
    OptionalDouble unfusedPredictedNanos,
    List<RankedConfiguration> configurations) {

  /// One configuration with its verdict.
  ///
  /// @param saved share of the unfused time that it saves
  public record RankedConfiguration(
      Configuration configuration,
      Spread time,
      Estimate saved,
      Verdict verdict,
      Conditions conditions,
      OptionalDouble predictedNanos) {
    /// Returns the tuning, for charts of studies of pipelines.
    public Overlap overlap() {
      return (Overlap) configuration;
    }
  }

  /// Returns true if the configurations are tunings of a pipeline, false if they are named steps.
  public boolean ofPipeline() {
    return reference instanceof Overlap;
  }

  /// Returns false if the times are no evidence, and no configuration is judged by them.
  public boolean isJudged() {
    return configurations.stream().noneMatch(each -> each.verdict() == Verdict.UNJUDGED);
  }

  /// Verdict on a configuration against the best.
  public enum Verdict {
    BEST("best"),
    TIED("ties with best"),
    SLOWER("slower"),
    UNJUDGED(Caveats.SHARED);

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
