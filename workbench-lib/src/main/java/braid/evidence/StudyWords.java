package braid.evidence;

import braid.internal.report.statistics.Conditions;
import braid.internal.report.statistics.Doubts;
import braid.internal.report.statistics.Precision;
import braid.internal.report.statistics.Ranking;
import braid.internal.report.value.Caveats;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.TimeScale;
import braid.model.Configuration;
import braid.model.Overlap;
import braid.model.Spread;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.function.Function;
import java.util.stream.Collectors;

/// A study's finding in sentences: what is best, by how much, and how sure that is.
final class StudyWords {
  /// Ties named in a line; the table marks all.
  private static final int TIES_NAMED = 3;

  private final Study study;
  private final Ranking ranking;
  private final Spread unfused;
  private final SequencedSet<String> varying;
  private final String referenceName;

  /// @param unfused both times of the reference
  StudyWords(Study study, Ranking ranking, Spread unfused) {
    this.study = study;
    this.ranking = ranking;
    this.unfused = unfused;
    varying = study.varying();
    referenceName = ConfigurationLabel.reference(study.reference());
  }

  String headline() {
    if (!study.timesCount()) {
      return Caveats.SHARED + "; " + unjudged();
    }
    var doubts = doubts();
    return found()
        + advice().map(advice -> "; " + advice).orElse("")
        + (doubts.isEmpty() ? "" : "; doubtful: " + String.join("; ", doubts))
        + Caveats.oneRank(study.problem(), study.ranks()).map(note -> "; " + note).orElse("");
  }

  private String found() {
    if (ranking.best() == Ranking.UNFUSED) {
      return "%s (%s) here beyond the noise (±%s)%s"
          .formatted(
              nothingBeats(),
              TimeScale.format(unfused.medianNanos()),
              percent(ranking.noiseFloor()),
              ties());
    }
    var trial = study.trials().get(ranking.best());
    var saved = ranking.saved().get(ranking.best());
    return "%s: %s, %s less than %s's %s (%s to %s with %s confidence; noise ±%s)%s"
        .formatted(
            name(trial.configuration()),
            TimeScale.format(trial.medianNanos()),
            percent(saved.value()),
            referenceName,
            TimeScale.format(unfused.medianNanos()),
            percent(saved.low()),
            percent(saved.high()),
            TimeScale.percent(ranking.confidence()),
            percent(ranking.noiseFloor()),
            ties());
  }

  private String ties() {
    if (ranking.ties().isEmpty()) {
      return "";
    }
    int more = ranking.ties().size() - TIES_NAMED;
    return "; as good within the noise: "
        + ranking.ties().stream()
            .limit(TIES_NAMED)
            .map(i -> name(study.trials().get(i).configuration()))
            .collect(Collectors.joining(", "))
        + (more > 0 ? " and " + more + " more" : "");
  }

  String finding() {
    if (!study.timesCount()) {
      return capitalized(unjudged());
    }
    if (ranking.best() == Ranking.UNFUSED) {
      return "%s here beyond the noise".formatted(capitalized(nothingBeats()));
    }
    var saved = ranking.saved().get(ranking.best());
    return "%s: %s less time than %s (%s to %s)"
        .formatted(
            name(study.trials().get(ranking.best()).configuration()),
            percent(saved.value()),
            referenceName,
            percent(saved.low()),
            percent(saved.high()));
  }

  private String unjudged() {
    return study.prediction().map(this::predicted).orElseGet(this::ran);
  }

  private String ran() {
    int trials = study.trials().size();
    return "%d %s ran beside %s"
        .formatted(trials, trials == 1 ? "configuration" : "configurations", referenceName);
  }

  /// Returns the shortest and the longest predicted time.
  private String predicted(Study.Prediction prediction) {
    var times = new LinkedHashMap<String, Long>();
    times.put(referenceName, prediction.nanos().getFirst());
    for (int i = 0; i < study.trials().size(); i++) {
      times.put(name(study.trials().get(i).configuration()), prediction.nanos().get(i + 1));
    }
    var known = times.entrySet().stream().filter(each -> each.getValue() > 0).toList();
    if (known.isEmpty()) {
      return ran();
    }
    Function<Map.Entry<String, Long>, String> words =
        each -> "%s (%s)".formatted(TimeScale.format(each.getValue()), each.getKey());
    return "predicted on %s: %s to %s"
        .formatted(
            prediction.machine(),
            words.apply(Collections.min(known, Map.Entry.comparingByValue())),
            words.apply(Collections.max(known, Map.Entry.comparingByValue())));
  }

  private String nothingBeats() {
    return "no %s beats %s"
        .formatted(study.reference() instanceof Overlap ? "overlap" : "step", referenceName);
  }

  private static String capitalized(String sentence) {
    return sentence.substring(0, 1).toUpperCase(Locale.ROOT) + sentence.substring(1);
  }

  String basis() {
    if (!study.timesCount()) {
      return "median of %d rounds in shuffled order, slowest rank".formatted(study.repeats())
          + study.prediction().map(each -> "; predicted on " + each.machine()).orElse("");
    }
    return "median of %d rounds in shuffled order, slowest rank; noise floor ±%s"
        .formatted(study.repeats(), percent(ranking.noiseFloor()));
  }

  Optional<String> advice() {
    if (!study.timesCount()) {
      return Optional.empty();
    }
    int configurations = study.trials().size();
    int least = Ranking.leastRounds(configurations);
    if (study.repeats() < least) {
      return Optional.of(
          "too few rounds to call anything better: %d of the %d that %s; measure more"
              .formatted(
                  study.repeats(),
                  least,
                  configurations == 1
                      ? "1 configuration needs"
                      : configurations + " configurations need"));
    }
    var precision = ranking.precision();
    if (precision.isEnough()) {
      return Optional.empty();
    }
    long wanted = precision.roundsFor(Precision.GOAL);
    return Optional.of(
        "noisy: ±%s after %d rounds%s; raise the budget or quiet the machine"
            .formatted(
                percent(precision.share()),
                study.repeats(),
                wanted <= Study.MAX_REPEATS
                    ? " (±%s takes about %d)".formatted(percent(Precision.GOAL), wanted)
                    : ""));
  }

  List<String> doubts() {
    var measured = new LinkedHashMap<String, Conditions>();
    measured.put(referenceName, Conditions.of(study.unfusedReadings()));
    study
        .trials()
        .forEach(
            trial -> measured.put(name(trial.configuration()), Conditions.of(trial.readings())));
    return Doubts.of(measured);
  }

  private String name(Configuration configuration) {
    return ConfigurationLabel.distinguishing(configuration, varying);
  }

  private static String percent(double share) {
    return String.format(Locale.ROOT, "%.1f%%", 100 * share);
  }
}
