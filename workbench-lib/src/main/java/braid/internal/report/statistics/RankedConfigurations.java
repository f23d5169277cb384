package braid.internal.report.statistics;

import braid.internal.report.value.Caveats;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.Percent;
import braid.model.Configuration;
import braid.model.Estimate;
import java.util.LinkedHashMap;
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
/// @param reference the reference, which is unfused for a pipeline
/// @param unfused times of the reference
/// @param unfusedConditions state of the hardware during the reference
/// @param margin share within which a time is equal to another
/// @param unfusedIsBest true if every configuration is equal to the reference or slower
/// @param unfusedPredictedNanos predicted time of the reference
public record RankedConfigurations(
    String finding,
    String setting,
    String basis,
    SequencedSet<String> varying,
    Configuration reference,
    Spread unfused,
    Conditions unfusedConditions,
    double margin,
    boolean unfusedIsBest,
    OptionalDouble unfusedPredictedNanos,
    List<RankedConfiguration> configurations) {

  /// One configuration with its verdict.
  ///
  /// @param excess share by which it takes longer than the reference, negative if it is faster
  /// @param standing place beside the best
  public record RankedConfiguration(
      Configuration configuration,
      Spread time,
      Estimate excess,
      Verdict verdict,
      Standing standing,
      Conditions conditions,
      OptionalDouble predictedNanos) {
    /// Returns the number of splits; 0 if it has none, such as a schedule of one's own.
    public int splits() {
      return configuration.count("splits", 0);
    }
  }

  /// Returns problem and machine, and the settings that all configurations share.
  public String shared() {
    var common = new LinkedHashMap<>(configurations.getFirst().configuration().columns());
    configurations.forEach(
        each -> common.entrySet().retainAll(each.configuration().columns().entrySet()));
    return ofPipeline() && !common.isEmpty()
        ? setting + "\nall with " + ConfigurationLabel.settings(common)
        : setting;
  }

  /// Returns true if the configurations are tunings of a pipeline, false if they are named steps.
  public boolean ofPipeline() {
    return !(reference instanceof Configuration.Named);
  }

  /// Returns false if the times are no evidence, and no configuration is judged by them.
  public boolean isJudged() {
    return configurations.stream().noneMatch(each -> each.verdict() == Verdict.UNJUDGED);
  }

  /// Verdict on a configuration against the reference.
  public enum Verdict {
    BETTER("better"),
    EQUAL("equal"),
    SLOWER("slower"),
    UNDECIDED("undecided"),
    UNJUDGED(Caveats.SHARED);

    private final String word;

    Verdict(String word) {
      this.word = word;
    }

    @Override
    public String toString() {
      return word;
    }
  }

  /// Standing of a configuration beside the best, which is the reference if none is better.
  public enum Standing {
    BEST,
    /// The interval of the difference to the best lies within the margin.
    EQUAL,
    UNDECIDED,
    BEHIND;

    /// @param againstBest verdict against the best
    static Standing of(Verdict againstBest) {
      return switch (againstBest) {
        case EQUAL -> EQUAL;
        // The best beats the reference, which one that beats only the best does not.
        case UNDECIDED, BETTER -> UNDECIDED;
        case SLOWER, UNJUDGED -> BEHIND;
      };
    }
  }

  /// Returns the verdict on a configuration in a few words: "better, equal to best".
  public String words(RankedConfiguration configuration) {
    return switch (configuration.verdict()) {
      case BETTER ->
          switch (configuration.standing()) {
            case BEST -> "best";
            case EQUAL -> "better, equal to best";
            case UNDECIDED -> "better, perhaps best";
            case BEHIND -> "better";
          };
      case EQUAL -> "equal within ±" + Percent.of(margin);
      case UNDECIDED ->
          configuration.standing() == Standing.EQUAL ? "undecided, equal to best" : "undecided";
      case SLOWER, UNJUDGED -> configuration.verdict().toString();
    };
  }
}
