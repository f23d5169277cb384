package braid.launcher.bench.report;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.TreeMap;

/// The report as JSON: `{"front": 1, "machine": {…}, "rows": [{"what", "unit", "braid": {RANKS:
/// MEASURE}, "limit"?, "limit_ranks"?, "verdict"?, "ipyparallel"?: MEASURE, "ratio"?}],
/// "expression_stages": {RANKS: {STAGE: MEASURE}}, "remarks": […]}`, where MEASURE is `{"median",
/// "low", "high", "repeats"}`. `front` is the version of this shape.
public final class JsonReport {
  private static final int SHAPE = 1;
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create();

  private JsonReport() {}

  public static String of(FrontReport report) {
    var whole = new JsonObject();
    whole.addProperty("front", SHAPE);
    whole.add("machine", machine(report.machine()));
    var rows = new JsonArray();
    report.rows().forEach(row -> rows.add(row(row)));
    whole.add("rows", rows);
    var stages = new TreeMap<>(report.stages());
    stages.keySet().retainAll(report.rankCounts());
    whole.add("expression_stages", GSON.toJsonTree(stages));
    whole.add("remarks", GSON.toJsonTree(report.remarks()));
    return GSON.toJson(whole) + "\n";
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
    object.add("braid", GSON.toJsonTree(new TreeMap<>(row.byRanks())));
    row.limit()
        .ifPresent(
            limit -> {
              object.addProperty("limit", limit.most());
              object.addProperty("limit_ranks", limit.ranks());
            });
    row.verdict().ifPresent(verdict -> object.addProperty("verdict", verdict.word()));
    row.peer().ifPresent(peer -> object.add("ipyparallel", GSON.toJsonTree(peer)));
    row.ratio().ifPresent(ratio -> object.addProperty("ratio", ratio));
    return object;
  }
}
