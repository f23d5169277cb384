package braid.launcher.selftest;

import braid.launcher.ExitCode;
import braid.launcher.cell.CellFailure;
import braid.launcher.notebook.run.CellAttempt;
import braid.launcher.selftest.TestedConfiguration.Outcome;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Optional;

/// Result of a self-test, with every way until its end. Its JSON is `{"selftest": 1, "braid":
/// VERSION, "backend", "why", "ranks", "ok": BOOLEAN, "summary", "failure": TEXT or null, "ways":
/// [{"what", "method", "transport", "memory", "dtype", "outcome": "ok" | "not_available" | "wrong"
/// | "not_run", "cases", "said"}, …]}`. Fields are stable, and new ones may be added.
///
/// @param failure why it was aborted, if it was
public record SelfTestResult(List<TestedConfiguration> ways, Optional<CellFailure> failure) {
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
            failure.isPresent() ? ", ABORTED" : "");
  }

  /// @param about first fields of the JSON, such as versions
  public String json(JsonObject about) {
    var json = new JsonObject();
    json.addProperty("selftest", SHAPE);
    about.entrySet().forEach(field -> json.add(field.getKey(), field.getValue()));
    json.addProperty("ok", exitCode() == ExitCode.OK);
    json.addProperty("summary", summary());
    json.addProperty("failure", failure.map(CellFailure::message).orElse(null));
    var list = new JsonArray();
    for (var way : ways) {
      var item = new JsonObject();
      for (int part = 0; part < TestedConfiguration.PARTS.size(); part++) {
        item.addProperty(TestedConfiguration.PARTS.get(part), way.parts().get(part));
      }
      item.addProperty("outcome", way.outcome().toString().replace(' ', '_'));
      item.addProperty("cases", way.cases());
      item.addProperty("said", way.said());
      list.add(item);
    }
    json.add("ways", list);
    return new GsonBuilder()
            .setPrettyPrinting()
            .serializeNulls()
            .disableHtmlEscaping()
            .create()
            .toJson(json)
        + "\n";
  }
}
