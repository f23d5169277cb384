package braid.selftest;

import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.MemoryKind;
import braid.selftest.SelfTest.Configuration;
import braid.selftest.SelfTest.Outcome;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// A self-test on GPUs as `braid selftest --record` keeps it.
///
/// @param place date, ranks, GPUs and driver, in words
public record SelfTestRecord(String place, int ranks, List<Group> groups) {
  /// Text for paths that no record has.
  public static final String NOT_RUN = "not run";

  /// Transports by the names that older records use.
  private static final Map<String, String> RENAMED =
      Map.of("nccl", "nccl_kernels", "nvshmem", "nvshmem_puts");

  /// Configurations with one outcome: each combination of these parts.
  public record Group(
      List<String> whats,
      List<String> methods,
      List<String> transports,
      List<String> memories,
      List<String> dtypes,
      Outcome outcome) {
    private boolean has(TestedPath path) {
      return configurations().anyMatch(path::covers);
    }

    private Stream<Configuration> configurations() {
      var all = new ArrayList<Configuration>();
      for (var subject : whats) {
        for (var method : methods) {
          for (var transport : transports) {
            for (var memory : memories) {
              for (var dtype : dtypes) {
                all.add(new Configuration(subject, method, transport, memory, dtype));
              }
            }
          }
        }
      }
      return all.stream();
    }
  }

  public SelfTestRecord {
    groups = List.copyOf(groups);
  }

  /// Parses a record.
  public static SelfTestRecord parse(String json) {
    var record = JsonParser.parseString(json).getAsJsonObject();
    var backend = record.get("backend").getAsString();
    if (!backend.equals(BackendKind.CUDA.toString())) {
      throw new BraidException(
          "a record must be of backend cuda but was of %s; run braid selftest --record on GPUs"
              .formatted(backend));
    }
    int ranks = record.get("ranks").getAsInt();
    var place =
        "%s, %d ranks on %d x %s, driver %s%s"
            .formatted(
                record.get("date").getAsString(),
                ranks,
                record.get("gpus").getAsInt(),
                record.get("gpu").getAsString(),
                record.get("driver").getAsString().replaceFirst(",.*", ""),
                record.get("quick").getAsBoolean() ? ", quick" : "");
    var groups = new ArrayList<Group>();
    for (var group : record.getAsJsonArray("groups")) {
      groups.add(group(group.getAsJsonObject()));
    }
    return new SelfTestRecord(place, ranks, groups);
  }

  private static Group group(JsonObject group) {
    return new Group(
        strings(group.getAsJsonArray("what")),
        strings(group.getAsJsonArray("method")),
        strings(group.getAsJsonArray("transport")).stream()
            .map(name -> RENAMED.getOrDefault(name, name))
            .toList(),
        strings(group.getAsJsonArray("memory")),
        strings(group.getAsJsonArray("dtype")),
        Outcome.valueOf(group.get("outcome").getAsString().toUpperCase(Locale.ROOT)));
  }

  private static List<String> strings(JsonArray array) {
    return array.asList().stream().map(JsonElement::getAsString).toList();
  }

  /// Describes the newest record that has one of the paths, of a day the one that has most, and
  /// names those that it lacks.
  ///
  /// @param records with the date first, so that their order is that of time; those of one rank do
  ///   not count, since it has nothing to communicate
  public static String lastRun(Collection<SelfTestRecord> records, List<TestedPath> paths) {
    return records.stream()
        .filter(record -> record.ranks > 1)
        .filter(record -> paths.stream().anyMatch(record::ran))
        .max(
            Comparator.comparing(SelfTestRecord::date)
                .thenComparingLong(record -> paths.stream().filter(record::ran).count())
                .thenComparing(SelfTestRecord::place))
        .map(record -> record.text(paths))
        .orElse(NOT_RUN);
  }

  private String date() {
    return place.substring(0, place.indexOf(','));
  }

  private boolean ran(TestedPath path) {
    return has(path, Outcome.OK) || has(path, Outcome.WRONG);
  }

  private boolean has(TestedPath path, Outcome outcome) {
    return groups.stream().anyMatch(group -> group.outcome == outcome && group.has(path));
  }

  private String text(List<TestedPath> paths) {
    var wrong = paths.stream().filter(path -> has(path, Outcome.WRONG)).toList();
    var absent = new ArrayList<>(paths.stream().filter(path -> !ran(path)).toList());
    var words = new ArrayList<String>();
    for (var kind : MemoryKind.values()) {
      var all = paths.stream().filter(path -> path.parts().contains(kind.toString())).toList();
      if (!all.isEmpty() && absent.containsAll(all)) {
        absent.removeAll(all);
        words.add(kind + " memory");
      }
    }
    absent.forEach(path -> words.add(path.toString()));
    return place + listed(", wrong: ", wrong) + listed(", without ", words);
  }

  private static String listed(String before, List<?> all) {
    return all.isEmpty()
        ? ""
        : all.stream().map(String::valueOf).collect(Collectors.joining(", ", before, ""));
  }
}
