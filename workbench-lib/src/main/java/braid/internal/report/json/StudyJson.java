package braid.internal.report.json;

import braid.model.ChunkOrder;
import braid.model.Configuration;
import braid.model.ContextParallel;
import braid.model.HardwareReading;
import braid.model.Overlap;
import braid.model.Priority;
import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// A study as JSON: every time that was measured, none that was computed from them. A trial has the
/// components of its configuration as fields of its own; a step has its name, in the field `step`.
public record StudyJson(
    SequencedMap<String, String> problem,
    int ranks,
    long seed,
    List<Long> unfusedFirst,
    List<Long> unfusedAgain,
    List<Trial> trials,
    List<HardwareReading> unfusedReadings,
    Configuration reference,
    Optional<Prediction> prediction,
    long measuredNanos) {
  public static final String MIME = "application/vnd.braid.study+json";
  static final String FORMAT = "braid.study/1";
  private static final String READINGS = "readings";
  private static final String UNFUSED_READINGS = "unfusedReadings";
  private static final String REFERENCE = "reference";
  private static final String REFERENCE_TUNING = "referenceTuning";
  private static final String PREDICTED_ON = "predictedOn";
  private static final String PREDICTED_NANOS = "predictedNanos";
  private static final String MEASURED_NANOS = "measuredNanos";
  private static final Gson GSON = new Gson();

  /// Components of a tuning that studies of Braid's first version lack, as they were then. Later
  /// ones have them all, since a default may change.
  private static final Map<String, Object> ABSENT =
      Map.of(
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

  /// One configuration, its time in each round, and the hardware's state at each.
  public record Trial(
      Configuration configuration, List<Long> nanos, List<HardwareReading> readings) {}

  /// Predicted times of the reference, then of each trial; 0 for one that cannot be simulated.
  public record Prediction(String machine, List<Long> nanos) {}

  public String write() {
    var json = new JsonObject();
    json.addProperty("format", FORMAT);
    json.add("problem", GSON.toJsonTree(problem));
    json.addProperty("ranks", ranks);
    json.addProperty("seed", seed);
    switch (reference) {
      case Configuration.Named named -> json.addProperty(REFERENCE, named.name());
      // Studies of GEMMs have none: their reference is unfused.
      case Overlap overlap when overlap.equals(Overlap.unfused()) -> {}
      case Configuration other -> json.add(REFERENCE_TUNING, tree(other));
    }
    json.add("unfusedNanos", GSON.toJsonTree(unfusedFirst));
    json.add("unfusedAgainNanos", GSON.toJsonTree(unfusedAgain));
    var all = new JsonArray();
    for (var trial : trials) {
      var one = tree(trial.configuration());
      one.add("nanos", GSON.toJsonTree(trial.nanos()));
      addReadings(one, READINGS, trial.readings());
      all.add(one);
    }
    json.add("trials", all);
    addReadings(json, UNFUSED_READINGS, unfusedReadings);
    prediction.ifPresent(
        predicted -> {
          json.addProperty(PREDICTED_ON, predicted.machine());
          json.add(PREDICTED_NANOS, GSON.toJsonTree(predicted.nanos()));
        });
    if (measuredNanos > 0) {
      json.addProperty(MEASURED_NANOS, measuredNanos);
    }
    return json.toString();
  }

  private static JsonObject tree(Configuration configuration) {
    if (configuration instanceof Configuration.Named named) {
      var json = new JsonObject();
      json.addProperty(Configuration.Named.COLUMN, named.name());
      return json;
    }
    return GSON.toJsonTree(configuration).getAsJsonObject();
  }

  private static void addReadings(JsonObject json, String name, List<HardwareReading> readings) {
    if (!readings.isEmpty()) {
      json.add(name, ReadingsJson.tree(readings));
    }
  }

  public static StudyJson read(String json) {
    var fields =
        JsonFields.document("study", FORMAT, json)
            .only(
                "format",
                "problem",
                "ranks",
                "seed",
                "unfusedNanos",
                "unfusedAgainNanos",
                "trials",
                UNFUSED_READINGS,
                REFERENCE,
                REFERENCE_TUNING,
                PREDICTED_ON,
                PREDICTED_NANOS,
                MEASURED_NANOS);
    return new StudyJson(
        fields.texts("problem"),
        fields.whole("ranks"),
        fields.wholeLong("seed"),
        fields.wholes("unfusedNanos"),
        fields.wholes("unfusedAgainNanos"),
        fields.objects("trials").stream().map(StudyJson::trial).toList(),
        readings(fields, UNFUSED_READINGS),
        reference(fields),
        // Studies of one device per rank have none.
        fields.has(PREDICTED_ON)
            ? Optional.of(new Prediction(fields.text(PREDICTED_ON), fields.wholes(PREDICTED_NANOS)))
            : Optional.empty(),
        // Studies of earlier versions have none.
        fields.has(MEASURED_NANOS) ? fields.wholeLong(MEASURED_NANOS) : 0);
  }

  private static Configuration reference(JsonFields fields) {
    if (fields.has(REFERENCE)) {
      return new Configuration.Named(fields.text(REFERENCE));
    }
    return fields.has(REFERENCE_TUNING)
        ? configuration(fields.object(REFERENCE_TUNING))
        : Overlap.unfused();
  }

  private static Trial trial(JsonFields fields) {
    return new Trial(
        configuration(fields, "nanos", READINGS),
        fields.wholes("nanos"),
        readings(fields, READINGS));
  }

  /// Reads a configuration, whose kind a field shows that no other kind has.
  ///
  /// @param others fields beside those of the configuration
  private static Configuration configuration(JsonFields fields, String... others) {
    if (fields.has(Configuration.Named.COLUMN)) {
      fields.only(Configuration.Named.COLUMN, "nanos", READINGS);
      return new Configuration.Named(fields.text(Configuration.Named.COLUMN));
    }
    Class<? extends Record> type =
        fields.has("name")
            ? Configuration.OwnSchedule.class
            : fields.has("layout")
                ? Configuration.LayoutTuning.class
                : fields.has("ulyssesRanks") ? ContextParallel.class : Overlap.class;
    fields.only(JsonFields.components(type, others));
    return (Configuration) fields.record(type, type == Overlap.class ? ABSENT : Map.of());
  }

  /// Studies of Braid's first version have none, like those on hardware that reports nothing.
  private static List<HardwareReading> readings(JsonFields fields, String name) {
    return fields.has(name) ? ReadingsJson.read(fields, name) : List.of();
  }
}
