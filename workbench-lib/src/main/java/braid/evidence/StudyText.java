package braid.evidence;

import braid.internal.report.statistics.Conditions;
import braid.internal.report.statistics.Doubts;
import braid.internal.report.statistics.RankedConfigurations.Standing;
import braid.internal.report.statistics.RankedConfigurations.Verdict;
import braid.internal.report.statistics.Ranking;
import braid.internal.report.statistics.Spread;
import braid.internal.report.value.Caveats;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.Percent;
import braid.internal.report.value.TimeScale;
import braid.model.Configuration;
import braid.model.HostLoad;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// A study's finding in sentences: what is best, by how much, and how sure that is.
final class StudyText {
  /// A quieter machine decides sooner than more rounds of that time.
  private static final double LONG_NANOS = 900e9;

  /// Configurations named in a line; the table has all.
  private static final int MOST_NAMED = 3;

  private final Study<?> study;
  private final Ranking ranking;
  private final Spread unfused;
  private final SequencedSet<String> varying;
  private final String referenceName;

  /// @param unfused both times of the reference
  StudyText(Study<?> study, Ranking ranking, Spread unfused) {
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
    var doubts = doubtsOfMachine();
    return SpeedLimits.brief(study.faults()).map(fault -> fault + "; ").orElse("")
        + found()
        + ofParts()
        + advice().map(advice -> "; " + advice).orElse("")
        + (doubts.isEmpty() ? "" : "; doubtful: " + String.join("; ", doubts))
        + Caveats.oneRank(study.problem(), study.ranks()).map(note -> "; " + note).orElse("");
  }

  private String found() {
    var undecided = ranking.configurations(Standing.UNDECIDED);
    if (ranking.best() != Ranking.UNFUSED) {
      var saved = ranking.excess().get(ranking.best()).negated();
      return "%s: %s, %s less than %s's %s (%s to %s with %s confidence; noise ±%s)%s%s"
          .formatted(
              name(ranking.best()),
              median(ranking.best()),
              Percent.of(saved.value(), saved),
              referenceName,
              TimeScale.format(unfused.medianNanos()),
              Percent.of(saved.low(), saved),
              Percent.of(saved.high(), saved),
              TimeScale.percent(ranking.confidence()),
              Percent.of(ranking.noiseFloor()),
              named(
                  "equal within ±" + Percent.of(ranking.margin()),
                  ranking.configurations(Standing.EQUAL)),
              named("undecided", undecided));
    }
    if (undecided.isEmpty()) {
      return "%s (%s): %s; noise ±%s"
          .formatted(
              nothingBeats(),
              TimeScale.format(unfused.medianNanos()),
              counts(),
              Percent.of(ranking.noiseFloor()));
    }
    var times =
        "; %s and %s; noise ±%s"
            .formatted(
                median(undecided.getFirst()),
                TimeScale.format(unfused.medianNanos()),
                Percent.of(ranking.noiseFloor()));
    return "%s%s"
        .formatted(
            undecided("undecided", undecided.getFirst(), times),
            study.trials().size() > 1
                ? "; of %d %ss %s".formatted(study.trials().size(), kind(), counts())
                : "");
  }

  /// Returns what the starts or builds say, if the rounds of several are pooled.
  private String ofParts() {
    int parts = study.parts().size();
    if (parts < 2) {
      return "";
    }
    var fastest = new LinkedHashMap<String, Integer>();
    study.fastestOfParts().forEach(each -> fastest.merge(name(each), 1, Integer::sum));
    return "; fastest in %d %s: %s"
        .formatted(
            parts,
            study.starts().isEmpty() ? "builds" : "starts",
            fastest.entrySet().stream()
                .sorted(Map.Entry.<String, Integer>comparingByValue().reversed())
                .map(
                    each ->
                        fastest.size() == 1
                            ? each.getKey()
                            : item(each.getKey()) + " in " + each.getValue())
                .collect(Collectors.joining(", ")));
  }

  /// @param word verdict: in a headline, [#advice] gives the reason
  /// @param more text behind the interval
  private String undecided(String word, int trial, String more) {
    var change = ranking.excessOverBest().get(trial);
    var size = Percent.of(Math.abs(change.value()), change);
    return "%s: %s may take %s than %s (interval %s%%%s)"
        .formatted(
            word,
            name(trial),
            change.value() < 0 ? size + " less time" : size + " more time",
            referenceName,
            Percent.interval(change),
            more);
  }

  /// Returns true if no interval of so few rounds can decide.
  private boolean isTooShort() {
    return study.repeats() < Ranking.leastRounds(study.trials().size());
  }

  /// Returns the number of configurations by verdict: "2 equal within ±3.0%, 4 slower".
  private String counts() {
    var parts = new ArrayList<String>();
    for (var verdict : List.of(Verdict.UNDECIDED, Verdict.EQUAL, Verdict.SLOWER)) {
      int count = ranking.configurations(verdict).size();
      if (count > 0) {
        var margin = verdict == Verdict.EQUAL ? " within ±" + Percent.of(ranking.margin()) : "";
        parts.add(count + " " + verdict + margin);
      }
    }
    return String.join(", ", parts);
  }

  private String named(String word, List<Integer> trials) {
    if (trials.isEmpty()) {
      return "";
    }
    int more = trials.size() - MOST_NAMED;
    return "; %s: %s%s"
        .formatted(
            word,
            trials.size() == 1
                ? name(trials.getFirst())
                : trials.stream()
                    .limit(MOST_NAMED)
                    .map(trial -> item(name(trial)))
                    .collect(Collectors.joining(", ")),
            more > 0 ? " and " + more + " more" : "");
  }

  /// Returns a name as an item of a list with commas.
  private static String item(String name) {
    return name.contains(",") ? "(" + name + ")" : name;
  }

  String finding() {
    var fault = SpeedLimits.brief(study.faults());
    if (fault.isPresent()) {
      return fault.get();
    }
    if (!study.timesCount()) {
      return capitalized(unjudged());
    }
    if (ranking.best() != Ranking.UNFUSED) {
      var saved = ranking.excess().get(ranking.best()).negated();
      return "%s: %s less time than %s (%s to %s)"
          .formatted(
              name(ranking.best()),
              Percent.of(saved.value(), saved),
              referenceName,
              Percent.of(saved.low(), saved),
              Percent.of(saved.high(), saved));
    }
    var undecided = ranking.configurations(Standing.UNDECIDED);
    return capitalized(
        undecided.isEmpty()
            ? nothingBeats() + ": " + counts()
            : undecided(
                isTooShort() ? "too few rounds to decide" : "undecided", undecided.getFirst(), ""));
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
    return "no %s beats %s".formatted(kind(), referenceName);
  }

  private String kind() {
    return study.reference() instanceof Configuration.Named ? "step" : "overlap";
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
        .formatted(study.repeats(), Percent.of(ranking.noiseFloor()));
  }

  /// Returns what would decide the study; empty if more rounds have no use.
  Optional<String> advice() {
    if (!study.timesCount() || study.ranks() == 1) {
      return Optional.empty();
    }
    int configurations = study.trials().size();
    if (isTooShort()) {
      return Optional.of(
          "too few rounds to call anything better: %d of the %d that %s; measure more"
              .formatted(
                  study.repeats(),
                  Ranking.leastRounds(configurations),
                  configurations == 1
                      ? "1 configuration needs"
                      : configurations + " configurations need"));
    }
    var undecided = ranking.configurations(Standing.UNDECIDED);
    if (undecided.isEmpty()) {
      return Optional.empty();
    }
    var pair =
        "between %s and %s"
            .formatted(
                name(undecided.getFirst()),
                ranking.best() == Ranking.UNFUSED ? referenceName : name(ranking.best()));
    var rounds = ranking.decidingRounds(undecided.getFirst(), Study.MAX_REPEATS);
    return Optional.of(
        rounds.isEmpty()
            ? "more rounds would not decide %s; quiet the machine".formatted(pair)
            : "about %s would decide %s, and %d were measured; %s"
                .formatted(
                    total(rounds.getAsInt()), pair, study.repeats(), remedy(rounds.getAsInt())));
  }

  private String remedy(int rounds) {
    double nanos = nanos(rounds);
    if (nanos == 0) {
      return "raise the budget or quiet the machine";
    }
    return nanos > LONG_NANOS
        ? "quiet the machine"
        // Half as long again: the estimate has noise too.
        : "raise the budget, or call braid run --until-decided %dm"
            .formatted(Math.round(Math.ceil(1.5 * nanos / 60e9)));
  }

  /// Returns the time of a number of rounds; 0 if the study does not know it.
  private double nanos(int rounds) {
    return (double) study.measuredNanos() / study.repeats() * rounds;
  }

  /// Returns a number of rounds, and their time if the study knows it: "130 rounds (45 s)".
  private String total(int rounds) {
    double nanos = nanos(rounds);
    return "%d rounds%s"
        .formatted(rounds, nanos > 0 ? " (%s)".formatted(TimeScale.seconds(nanos)) : "");
  }

  List<String> doubts() {
    return Stream.concat(study.faults().stream(), doubtsOfMachine().stream()).toList();
  }

  private List<String> doubtsOfMachine() {
    var measured = new LinkedHashMap<String, Conditions>();
    measured.put(referenceName, Conditions.of(study.unfusedReadings()));
    study
        .trials()
        .forEach(
            trial -> measured.put(name(trial.configuration()), Conditions.of(trial.readings())));
    var doubts = new ArrayList<>(Doubts.of(measured));
    study.load().filter(HostLoad::isHigh).map(HostLoad::toString).ifPresent(doubts::add);
    return doubts;
  }

  private String median(int trial) {
    return TimeScale.format(study.trials().get(trial).medianNanos());
  }

  private String name(int trial) {
    return name(study.trials().get(trial).configuration());
  }

  private String name(Configuration configuration) {
    return ConfigurationLabel.distinguishing(configuration, varying);
  }
}
