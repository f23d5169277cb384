package braid.launcher.bench.report;

import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.Map;

/// The report as JSON: `{"front": 1, "machine": {…}, "rows": [{"what", "unit", "braid": {RANKS:
/// MEASURE}, "limit"?, "limit_ranks"?, "verdict"?, "ipyparallel"?: MEASURE, "ratio"?}],
/// "expression_stages": {RANKS: {STAGE: MEASURE}}, "remarks": […]}`, where MEASURE is `{"median",
/// "low", "high", "repeats"}`. `front` is the version of this shape.
public final class JsonReport {
  private static final int SHAPE = 1;

  private JsonReport() {}

  public static String of(FrontReport report) {
    var whole = new JsonObject();
    whole.addProperty("front", SHAPE);
    whole.add("machine", machine(report.machine()));
    var rows = new JsonArray();
    report.rows().forEach(row -> rows.add(row(row)));
    whole.add("rows", rows);
    var stages = new JsonObject();
    for (int ranks : report.rankCounts()) {
      var of = report.stages().get(ranks);
      if (of != null) {
        var object = new JsonObject();
        of.forEach((stage, measure) -> object.add(stage, measure(measure)));
        stages.add(Integer.toString(ranks), object);
      }
    }
    whole.add("expression_stages", stages);
    var remarks = new JsonArray();
    report.remarks().forEach(remarks::add);
    whole.add("remarks", remarks);
    return new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create().toJson(whole)
        + "\n";
  }

  private static JsonObject machine(Machine machine) {
    var object = new JsonObject();
    object.addProperty("when", machine.when().toString());
    object.addProperty("processor", machine.processor());
    object.addProperty("cores", machine.cores());
    object.addProperty("memory_mib", machine.memoryMiB());
    object.addProperty("java", machine.java());
    object.addProperty("os", machine.os());
    object.addProperty("load", machine.load());
    return object;
  }

  private static JsonObject row(Row row) {
    var object = new JsonObject();
    object.addProperty("what", row.what());
    object.addProperty("unit", row.unit());
    var braid = new JsonObject();
    row.byRanks().entrySet().stream()
        .sorted(Map.Entry.comparingByKey())
        .forEach(e -> braid.add(e.getKey().toString(), measure(e.getValue())));
    object.add("braid", braid);
    row.limit()
        .ifPresent(
            limit -> {
              object.addProperty("limit", limit.most());
              object.addProperty("limit_ranks", limit.ranks());
            });
    row.verdict().ifPresent(verdict -> object.addProperty("verdict", verdict.word()));
    row.peer().ifPresent(peer -> object.add("ipyparallel", measure(peer)));
    row.ratio().ifPresent(ratio -> object.addProperty("ratio", ratio));
    return object;
  }

  private static JsonObject measure(Measure measure) {
    var object = new JsonObject();
    object.addProperty("median", measure.median());
    object.addProperty("low", measure.low());
    object.addProperty("high", measure.high());
    object.addProperty("repeats", measure.repeats());
    return object;
  }
}
