package braid.launcher.selftest;

import braid.launcher.ExitCode;
import braid.launcher.cell.CellFailure;
import braid.launcher.notebook.run.CellAttempt;
import braid.launcher.selftest.TestedConfiguration.Outcome;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// Result of a self-test, with every way until its end. Its JSON is `{"selftest": 1, …, "ok":
/// BOOLEAN, "summary", "failure": TEXT or null, "ways": [{"what", "method", "transport", "memory",
/// "dtype", "outcome": "ok" | "not_available" | "wrong" | "not_run", "cases", "said"}, …]}` with
/// the fields of [SelfTestFacts] after the first. Its record has `"groups"` instead of `"ways"`:
/// the parts are lists, each combination of which is a way with that outcome, and the cases are
/// theirs together. Fields are stable, and new ones may be added.
///
/// @param running the case that ran when it was aborted; empty if none did
/// @param failure why it was aborted, if it was
public record SelfTestResult(
    List<TestedConfiguration> ways, String running, Optional<CellFailure> failure) {
  private static final int SHAPE = 1;

  public SelfTestResult {
    ways = List.copyOf(ways);
  }

  public long count(Outcome outcome) {
    return ways.stream().filter(way -> way.outcome() == outcome).count();
  }

  /// Returns the exit code: that of the failure, if aborted; else an error if anything is wrong or
  /// was not run, or if nothing was available.
  public ExitCode exitCode() {
    if (failure.isPresent()) {
      return CellAttempt.exitCode(failure.get());
    }
    return count(Outcome.WRONG) + count(Outcome.NOT_RUN) > 0
        ? ExitCode.VERIFICATION_FAILED
        : count(Outcome.OK) > 0 ? ExitCode.OK : ExitCode.USAGE;
  }

  public String summary() {
    return "%d ways right (%d cases), %d wrong, %d not available%s%s"
        .formatted(
            count(Outcome.OK),
            ways.stream().mapToInt(TestedConfiguration::cases).sum(),
            count(Outcome.WRONG),
            count(Outcome.NOT_AVAILABLE),
            count(Outcome.NOT_RUN) == 0 ? "" : ", %d NOT RUN".formatted(count(Outcome.NOT_RUN)),
            failure.isEmpty() ? "" : running.isEmpty() ? ", ABORTED" : ", ABORTED in " + running);
  }

  /// @param about first fields of the JSON, such as versions
  public String json(JsonObject about) {
    var list = new JsonArray();
    for (var way : ways) {
      var item = new JsonObject();
      for (int part = 0; part < TestedConfiguration.PARTS.size(); part++) {
        item.addProperty(TestedConfiguration.PARTS.get(part), way.parts().get(part));
      }
      list.add(with(item, way.outcome(), way.cases(), way.said()));
    }
    var json = first(about);
    json.add("ways", list);
    return text(json);
  }

  /// Returns the record, which has the ways in groups: some 10 KiB for thousands of ways.
  ///
  /// @param about first fields of the JSON, such as versions
  public String record(JsonObject about) {
    var list = new JsonArray();
    for (var outcome : Outcome.values()) {
      var some = ways.stream().filter(way -> way.outcome() == outcome).toList();
      for (var group : SelfTestTable.grouped(some)) {
        var item = new JsonObject();
        for (int part = 0; part < TestedConfiguration.PARTS.size(); part++) {
          var values = new JsonArray();
          group.parts().get(part).forEach(values::add);
          item.add(TestedConfiguration.PARTS.get(part), values);
        }
        list.add(with(item, outcome, group.cases(), group.said()));
      }
    }
    var json = first(about);
    json.add("groups", list);
    return text(json);
  }

  private JsonObject first(JsonObject about) {
    var json = new JsonObject();
    json.addProperty("selftest", SHAPE);
    about.entrySet().forEach(field -> json.add(field.getKey(), field.getValue()));
    json.addProperty("ok", exitCode() == ExitCode.OK);
    json.addProperty("summary", summary());
    json.addProperty("failure", failure.map(CellFailure::message).orElse(null));
    return json;
  }

  private static JsonObject with(JsonObject item, Outcome outcome, int cases, String said) {
    item.addProperty("outcome", outcome.name().toLowerCase(Locale.ROOT));
    item.addProperty("cases", cases);
    item.addProperty("said", said);
    return item;
  }

  private static String text(JsonObject json) {
    return new GsonBuilder()
            .setPrettyPrinting()
            .serializeNulls()
            .disableHtmlEscaping()
            .create()
            .toJson(json)
        + "\n";
  }
}
