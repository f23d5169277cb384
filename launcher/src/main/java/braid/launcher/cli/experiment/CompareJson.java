package braid.launcher.cli.experiment;

import braid.evidence.Comparison;
import braid.evidence.Comparison.Row;
import braid.evidence.Comparison.Verdict;
import braid.internal.report.value.Caveats;
import braid.launcher.experiment.Differences;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Optional;

/// A comparison for programs: shares as numbers, times in nanoseconds. `compare` is raised if a
/// field changes or is removed.
final class CompareJson {
  private static final int SHAPE = 1;
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create();

  private CompareJson() {}

  static String of(
      String first,
      String second,
      Verdict verdict,
      List<Comparison> comparisons,
      int notCompared,
      Optional<Differences> differences) {
    var json = new JsonObject();
    json.addProperty("compare", SHAPE);
    json.addProperty("first", first);
    json.addProperty("second", second);
    json.addProperty("verdict", verdict.toString());
    var studies = new JsonArray();
    comparisons.forEach(comparison -> studies.add(study(comparison)));
    json.add("studies", studies);
    json.addProperty("studiesNotCompared", notCompared);
    differences.ifPresent(found -> json.add("differences", GSON.toJsonTree(found.all())));
    return GSON.toJson(json);
  }

  /// Returns the errors of times that no machine can reach, without a verdict.
  static String impossible(String first, String second, List<String> faults) {
    var json = new JsonObject();
    json.addProperty("compare", SHAPE);
    json.addProperty("first", first);
    json.addProperty("second", second);
    json.add("faults", GSON.toJsonTree(faults));
    return GSON.toJson(json);
  }

  private static JsonObject study(Comparison comparison) {
    var json = new JsonObject();
    json.addProperty("setting", comparison.setting());
    json.addProperty("verdict", comparison.verdict().toString());
    json.addProperty("headline", comparison.headline());
    json.addProperty("threshold", comparison.threshold());
    json.addProperty("noise", comparison.noise());
    json.addProperty("starts", comparison.starts());
    json.addProperty("referenceMoved", comparison.referenceMoved());
    if (!comparison.timesCount()) {
      json.addProperty(Caveats.COLUMN, Caveats.SHARED);
    }
    var rows = new JsonArray();
    comparison.rows().forEach(row -> rows.add(row(row, comparison.values())));
    json.add("configurations", rows);
    json.add("differing", GSON.toJsonTree(comparison.differing()));
    json.add("unmatched", GSON.toJsonTree(comparison.unmatched()));
    return json;
  }

  private static JsonObject row(Row row, String values) {
    var json = new JsonObject();
    json.addProperty("configuration", row.configuration());
    json.addProperty("verdict", row.verdict().toString());
    json.addProperty("firstNanos", row.firstNanos());
    json.addProperty("secondNanos", row.secondNanos());
    if (row.verdict() == Verdict.NOT_COMPARED) {
      return json;
    }
    json.addProperty("difference", row.difference().value());
    json.addProperty("low", row.difference().low());
    json.addProperty("high", row.difference().high());
    json.addProperty("confidence", row.difference().confidence());
    row.beside()
        .ifPresent(
            beside -> {
              json.addProperty("besideReference", beside.value());
              json.addProperty("besideReferenceLow", beside.low());
              json.addProperty("besideReferenceHigh", beside.high());
            });
    row.moreRounds()
        .ifPresent(
            more -> json.addProperty(values.equals("starts") ? "moreStarts" : "moreRounds", more));
    return json;
  }
}
