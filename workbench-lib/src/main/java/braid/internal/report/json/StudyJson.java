package braid.internal.report.json;

import braid.internal.json.RecordJson;
import braid.model.ChunkOrder;
import braid.model.Configuration;
import braid.model.ContextParallel;
import braid.model.HardwareReading;
import braid.model.HostLoad;
import braid.model.Overlap;
import braid.model.Priority;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// A study as JSON: every time that was measured, none that was computed from them. A trial has the
/// components of its configuration as fields of its own; a step has its name, in the field `step`.
///
/// @param reference name of the reference, if it is a step
/// @param referenceTuning tuning of the reference; studies of GEMMs have none, since it is unfused
/// @param predictedOn machine of a prediction
/// @param predictedNanos predicted times of the reference, then of each trial; 0 for one that
///   cannot be simulated
/// @param measuredNanos time that the study took; 0 in studies of earlier versions
/// @param starts rounds of each start that is pooled; empty for a single one
/// @param builds rounds of each build of a single start; empty for a single one
/// @param load what other processes did meanwhile; empty in studies of earlier versions
public record StudyJson(
    SequencedMap<String, String> problem,
    int ranks,
    long seed,
    Optional<String> reference,
    Optional<Configuration> referenceTuning,
    List<Long> unfusedNanos,
    List<Long> unfusedAgainNanos,
    List<Trial> trials,
    List<HardwareReading> unfusedReadings,
    Optional<String> predictedOn,
    List<Long> predictedNanos,
    long measuredNanos,
    List<Integer> starts,
    List<Integer> builds,
    Optional<HostLoad> load) {
  public static final String MIME = "application/vnd.braid.study+json";
  private static final String FORMAT = "braid.study/1";
  private static final String DOCUMENT = "study";

  /// Components of a tuning that studies of Braid's first version lack, as they were then. Later
  /// ones have them all, since a default may change.
  private static final Map<String, Object> FIRST_VERSION =
      Map.of(
          "groupRanks",
          0,
          "boundaries",
          List.of(),
          "order",
          ChunkOrder.NEXT_FIRST,
          "workers",
          0,
          "priority",
          Priority.COMMUNICATION,
          "replayed",
          false,
          "symmetricOutput",
          false);

  private static final RecordJson JSON =
      new RecordJson()
          .leavingOut(Overlap.class, Map.of("groupRanks", 0))
          .absent(Overlap.class, FIRST_VERSION)
          .leavingOut(HardwareReading.class, ReadingsJson.UNKNOWN)
          .leavingOut(Measured.class, Map.of("readings", List.of()))
          .leavingOut(
              StudyJson.class,
              Map.of(
                  "reference",
                  Optional.empty(),
                  "referenceTuning",
                  Optional.empty(),
                  "unfusedReadings",
                  List.of(),
                  "predictedOn",
                  Optional.empty(),
                  "predictedNanos",
                  List.of(),
                  "measuredNanos",
                  0L,
                  "starts",
                  List.of(),
                  "builds",
                  List.of(),
                  "load",
                  Optional.empty()))
          .form(Configuration.class, StudyJson::written, StudyJson::configuration)
          .form(Trial.class, StudyJson::written, StudyJson::trial);

  /// Times of a configuration and the hardware's state at each.
  private record Measured(List<Long> nanos, List<HardwareReading> readings) {}

  /// One configuration, its time in each round, and the hardware's state at each.
  public record Trial(
      Configuration configuration, List<Long> nanos, List<HardwareReading> readings) {}

  /// A step known by its name, in the field of this name.
  private record StepName(String step) {}

  /// Returns the reference of the study.
  public Configuration referenceConfiguration() {
    return reference
        .<Configuration>map(Configuration.Named::new)
        .or(() -> referenceTuning)
        .orElseGet(Overlap::unfused);
  }

  public String write() {
    return JSON.write(FORMAT, this).toString();
  }

  public static StudyJson read(String json) {
    return JSON.read(DOCUMENT, RecordJson.document(DOCUMENT, FORMAT, json), StudyJson.class);
  }

  private static JsonElement written(Configuration configuration) {
    return configuration instanceof Configuration.Named named
        ? JSON.write(new StepName(named.name()), StepName.class)
        : JSON.write(configuration, configuration.getClass());
  }

  private static JsonElement written(Trial trial) {
    var fields = (JsonObject) written(trial.configuration());
    var measured = JSON.write(new Measured(trial.nanos(), trial.readings()), Measured.class);
    fields.asMap().putAll(((JsonObject) measured).asMap());
    return fields;
  }

  private static Trial trial(String place, JsonElement json) {
    var configuration = json.deepCopy();
    var measured = new JsonObject();
    if (configuration instanceof JsonObject fields) {
      for (var component : Measured.class.getRecordComponents()) {
        var value = fields.remove(component.getName());
        if (value != null) {
          measured.add(component.getName(), value);
        }
      }
    }
    var candidate = configuration(place, configuration);
    var times = JSON.read(place, measured, Measured.class);
    return new Trial(candidate, times.nanos(), times.readings());
  }

  /// Reads a configuration, whose kind a field shows that no other kind has.
  private static Configuration configuration(String place, JsonElement json) {
    var fields = json instanceof JsonObject object ? object : new JsonObject();
    if (fields.has(Configuration.Named.COLUMN)) {
      return new Configuration.Named(JSON.read(place, json, StepName.class).step());
    }
    Class<? extends Configuration> type =
        fields.has("name")
            ? Configuration.OwnSchedule.class
            : fields.has("layout")
                ? Configuration.LayoutTuning.class
                : fields.has("ulyssesRanks") ? ContextParallel.class : Overlap.class;
    return JSON.read(place, json, type);
  }
}
