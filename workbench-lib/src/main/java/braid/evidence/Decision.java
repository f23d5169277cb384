package braid.evidence;

import braid.internal.json.RecordJson;
import braid.internal.report.EvidenceDisplay;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.Displayable;
import braid.model.MimeBundle;
import braid.model.Tuning;
import com.google.gson.JsonElement;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The tuning of a problem on a machine, decided by measurement. It is valid for this problem, on
/// this machine, with these versions of the libraries; [Decisions] keeps it.
///
/// @param setting problem and machine that it is valid for, as columns
/// @param versions versions of everything that may change times, as columns
/// @param study the measurements that decided
public record Decision(
    SequencedMap<String, String> setting,
    SequencedMap<String, String> versions,
    Instant decidedAt,
    Study<? extends Tuning> study)
    implements Displayable {
  /// Column of the problem in a setting.
  public static final String PROBLEM = "problem";

  /// Share of the time that a decision gives away for a simpler tuning at most.
  public static final double LARGEST_LOSS = 0.005;

  private static final String FORMAT = "braid.decision/1";
  private static final String DOCUMENT = "decision";
  private static final RecordJson JSON = new RecordJson();

  /// The decision as JSON.
  private record Kept(
      SequencedMap<String, String> setting,
      SequencedMap<String, String> versions,
      String decidedAt,
      JsonElement study) {}

  public Decision {
    setting = new LinkedHashMap<>(setting);
    versions = new LinkedHashMap<>(versions);
    decidedAt = decidedAt.truncatedTo(ChronoUnit.SECONDS);
    if (!setting.containsKey(PROBLEM)) {
      throw new BraidException(
          "a decision's setting must have the problem but has %s".formatted(setting.keySet()));
    }
    if (!study.timesCount()) {
      throw new BraidException(
          "a decision needs times that count but %s".formatted(study.headline()));
    }
    SpeedLimits.brief(study.faults())
        .ifPresent(
            fault -> {
              throw new BraidException(
                  fault
                      + ": nothing is decided by impossible times; check what was measured, and measure again");
            });
  }

  /// Returns the problem in one line.
  public String problem() {
    return String.valueOf(setting.get(PROBLEM));
  }

  /// Returns the tuning to take.
  public Tuning tuning() {
    return taken(study);
  }

  /// Returns the configuration of a study to take: the simplest of the best and its equals that
  /// take at most [#LARGEST_LOSS] longer than the fastest of them. Equals may differ by the whole
  /// margin of the study, which is too much to give away.
  public static <C extends Configuration> C taken(Study<C> study) {
    return study.simplest(LARGEST_LOSS);
  }

  /// Returns true if the measurements show that an overlap is faster than the reference, or that
  /// none is.
  public boolean isCertain() {
    return !study.best().equals(study.reference()) || study.isDecided();
  }

  /// Returns what has changed since: "nccl is 2.30 and was 2.28"; empty if nothing has.
  ///
  /// @param now versions of today
  public Optional<String> stale(SequencedMap<String, String> now) {
    var changes =
        Stream.concat(versions.keySet().stream(), now.keySet().stream())
            .distinct()
            .filter(name -> !version(versions, name).equals(version(now, name)))
            .map(
                name ->
                    "%s is %s and was %s"
                        .formatted(name, version(now, name), version(versions, name)))
            .collect(Collectors.joining(", "));
    return changes.isEmpty() ? Optional.empty() : Optional.of(changes);
  }

  private static String version(SequencedMap<String, String> versions, String name) {
    return versions.getOrDefault(name, "absent");
  }

  /// Returns the decision and its reason in one line.
  public String headline() {
    return "%s: take `%s`; %s".formatted(problem(), tuning(), study.headline());
  }

  public String toJson() {
    var kept =
        new Kept(
            setting, versions, decidedAt.toString(), RecordJson.parse(DOCUMENT, study.toJson()));
    return JSON.write(FORMAT, kept).toString();
  }

  /// Reads the JSON of [#toJson].
  public static Decision fromJson(String json) {
    var kept = JSON.read(DOCUMENT, RecordJson.document(DOCUMENT, FORMAT, json), Kept.class);
    try {
      return new Decision(
          kept.setting(),
          kept.versions(),
          Instant.parse(kept.decidedAt()),
          Study.fromJson(kept.study().toString()).cast(Tuning.class));
    } catch (DateTimeException e) {
      throw new BraidException(
          "decision.decidedAt must be a time but was %s; for example 2026-11-26T10:00:00Z"
              .formatted(kept.decidedAt()),
          e);
    }
  }

  @Override
  public MimeBundle display() {
    return EvidenceDisplay.of(headline(), study.table(), () -> List.of(study.chart()), List.of());
  }

  @Override
  public String toString() {
    return headline();
  }
}
