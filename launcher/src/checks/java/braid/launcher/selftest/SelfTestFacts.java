package braid.launcher.selftest;

import braid.launcher.session.SessionOptions;
import com.google.gson.JsonObject;
import java.time.LocalDate;
import java.util.Map;
import java.util.stream.Collectors;

/// When and on what a self-test ran, as first fields of its JSON: `"braid": VERSION, "date",
/// "backend", "why", "ranks", "quick": BOOLEAN`, and on GPUs `"gpu": NAME, "gpus": NUMBER,
/// "sharedGpus": BOOLEAN, "driver", "libraries": {NAME: VERSION, …}`.
public final class SelfTestFacts {
  private SelfTestFacts() {}

  /// @param driver version of the driver, if there is one
  /// @param libraries versions of NVIDIA's libraries, by name
  public static JsonObject of(
      String braid,
      LocalDate date,
      SessionOptions options,
      boolean isQuick,
      String driver,
      Map<String, String> libraries) {
    var backend = options.backend();
    var facts = new JsonObject();
    facts.addProperty("braid", braid);
    facts.addProperty("date", date.toString());
    facts.addProperty("backend", backend.kind().toString());
    facts.addProperty("why", backend.why());
    facts.addProperty("ranks", options.ranks());
    facts.addProperty("quick", isQuick);
    if (backend.isCuda()) {
      var gpus = backend.devices().stream().distinct().toList();
      facts.addProperty(
          "gpu",
          gpus.stream()
              .map(device -> device.replaceFirst("^GPU \\d+: ", ""))
              .distinct()
              .collect(Collectors.joining(", ")));
      facts.addProperty("gpus", gpus.size());
      facts.addProperty("sharedGpus", gpus.size() < options.ranks());
      facts.addProperty("driver", driver);
      var versions = new JsonObject();
      libraries.forEach(versions::addProperty);
      facts.add("libraries", versions);
    }
    return facts;
  }
}
