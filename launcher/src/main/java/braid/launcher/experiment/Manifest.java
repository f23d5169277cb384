package braid.launcher.experiment;

import braid.internal.json.RecordJson;
import braid.launcher.ranks.ProcessState;
import braid.model.BraidException;
import braid.model.Displayable;
import braid.model.MimeBundle;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.SequencedMap;
import java.util.SortedMap;
import java.util.TreeMap;

/// The stored record of one run, as JSON with stable fields. `format` is raised if a field changes;
/// new fields may be added.
public record Manifest(JsonObject json) implements Displayable {
  public static final String FORMAT = "braid.manifest/1";
  public static final String FILE = "manifest.json";

  /// Field of a further start: the id of the run of the first start.
  public static final String START_OF = "startOf";

  /// Field of the hosts of ranks that another program started: their ranks by name.
  static final String HOSTS = "hosts";

  /// Field of the options by which a command chooses the launcher of its ranks.
  static final String LAUNCHER_OPTIONS = "session.launcherOptions";

  static final Gson GSON = new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create();

  /// State of a run.
  public enum State {
    RUNNING,
    /// Every cell ran.
    COMPLETED,
    FAILED,
    /// Ended by Ctrl-C or a signal.
    INTERRUPTED,
    /// A session in Jupyter, which ends when its kernel does.
    CLOSED,
    /// Stored as `running`, but its process is gone.
    KILLED;

    public String word() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  public Manifest {
    json = json.deepCopy();
  }

  /// @throws BraidException if the file is not a manifest of this format
  public static Manifest read(Path file) {
    try {
      var element = RecordJson.parse(file.toString(), Files.readString(file));
      if (element instanceof JsonObject json
          && json.get("format") instanceof JsonPrimitive format
          && format.getAsString().equals(FORMAT)) {
        ManifestShape.check(json, file);
        return new Manifest(json);
      }
      throw new BraidException(
          "%s must be a manifest (%s) but is not, by its field format; another version of Braid may have written it"
              .formatted(file, FORMAT));
    } catch (IOException e) {
      throw new BraidException(file + " cannot be read: " + e, e);
    }
  }

  @Override
  public JsonObject json() {
    return json.deepCopy();
  }

  public String id() {
    return text("id").orElseThrow();
  }

  /// Returns a value by its path, for example `git.revision`; an object or list as JSON.
  public Optional<String> text(String path) {
    return at(path)
        .map(
            found -> found instanceof JsonPrimitive value ? value.getAsString() : found.toString());
  }

  /// Returns the texts of an object by its path; none if there is no such object.
  public SortedMap<String, String> texts(String path) {
    var texts = new TreeMap<String, String>();
    if (at(path).orElse(null) instanceof JsonObject object) {
      object.keySet().forEach(name -> texts.put(name, value(object, name)));
    }
    return texts;
  }

  /// Returns the options by which a command starts its ranks as this run did; none for ranks of its
  /// own host.
  public List<String> launcherOptions() {
    return at(LAUNCHER_OPTIONS).orElse(null) instanceof JsonArray options
        ? options.asList().stream().map(JsonElement::getAsString).toList()
        : List.of();
  }

  Optional<JsonElement> at(String path) {
    JsonElement found = json;
    for (var name : path.split("\\.", -1)) {
      var next = found instanceof JsonObject object ? object.get(name) : null;
      if (next == null || next.isJsonNull()) {
        return Optional.empty();
      }
      found = next;
    }
    return Optional.of(found);
  }

  /// Returns the file name of its notebook or program; of a session in Jupyter, which has none,
  /// these words.
  public String notebook() {
    return text("notebook.name").or(() -> text("program")).orElse("a session in Jupyter");
  }

  /// Returns true if it ran that notebook.
  ///
  /// @param name file name, with or without its ending, or the last parts of a path
  public boolean isOf(String name) {
    var path = "/" + text("notebook.path").orElse(notebook());
    var wanted = "/" + name.replaceFirst("^(\\./)+|^/", "");
    return path.endsWith(wanted) || path.endsWith(wanted + ".ipynb");
  }

  /// Returns true if it is another start of an earlier run, on fresh ranks.
  public boolean isFurtherStart() {
    return text(START_OF).isPresent();
  }

  /// Returns the id of the first start, which is this run if it was started once.
  public String firstStart() {
    return text(START_OF).orElse(id());
  }

  public boolean hasStudy() {
    return measured().stream().anyMatch(Measured::isStudy);
  }

  public Instant started() {
    return text("started").map(Instant::parse).orElse(Instant.EPOCH);
  }

  public State state() {
    var word = text("state").orElse("");
    for (var state : State.values()) {
      if (state.word().equals(word)) {
        return state == State.RUNNING && !isAlive() ? State.KILLED : state;
      }
    }
    throw new BraidException(
        "a run's state must be one of %s but %s says \"%s\"; it was changed by hand"
            .formatted(List.of(State.values()), id(), word));
  }

  /// Compares the start time too, since process ids are reused.
  private boolean isAlive() {
    return text("process.pid")
        .map(Long::parseLong)
        .filter(pid -> ProcessState.of(pid).filter(state -> !state.hasEnded()).isPresent())
        .flatMap(ProcessHandle::of)
        .flatMap(process -> process.info().startInstant())
        .map(start -> start.truncatedTo(ChronoUnit.SECONDS).toString())
        .filter(start -> text("process.started").equals(Optional.of(start)))
        .isPresent();
  }

  /// A measurement of the run.
  ///
  /// @param kind `profiles` or `study`
  /// @param problem problem of a study in one line; empty for profiles
  /// @param headline result in one line
  /// @param decided true for a study that shows of every configuration whether it is the best
  public record Measured(String id, String kind, String problem, String headline, boolean decided) {
    public boolean isStudy() {
      return kind.equals("study");
    }

    /// Returns the problem and its result.
    public String answer() {
      return Manifest.answer(problem, headline);
    }
  }

  static String answer(String problem, String headline) {
    return problem.isEmpty() ? headline : problem + ": " + headline;
  }

  /// Returns the measurements, oldest first.
  public List<Measured> measured() {
    var measured = new ArrayList<Measured>();
    if (json.get("data") instanceof JsonArray data) {
      for (var each : data) {
        var fields = each.getAsJsonObject();
        measured.add(
            new Measured(
                fields.get("id").getAsString(),
                value(fields, "kind"),
                value(fields, "problem"),
                value(fields, "found"),
                value(fields, "decided").equals("true")));
      }
    }
    return measured;
  }

  /// Returns the machine's load average when the run began; empty if it was not told.
  OptionalDouble load() {
    return at("machine.load").map(Manifest::load).orElse(OptionalDouble.empty());
  }

  /// Returns the highest load average right after a study of the run.
  OptionalDouble loadMeasured() {
    var loads = new ArrayList<Double>();
    if (json.get("data") instanceof JsonArray data) {
      for (var each : data) {
        var load = each.getAsJsonObject().get("load");
        if (load != null) {
          load(load).ifPresent(loads::add);
        }
      }
    }
    return loads.stream().mapToDouble(load -> load).max();
  }

  /// A negative load is one that the system does not tell.
  private static OptionalDouble load(JsonElement found) {
    return found instanceof JsonPrimitive number && number.isNumber() && number.getAsDouble() >= 0
        ? OptionalDouble.of(number.getAsDouble())
        : OptionalDouble.empty();
  }

  /// Returns the number of the machine's cores; 1 if it was not told.
  int cores() {
    return at("machine.cores")
        .filter(found -> found instanceof JsonPrimitive number && number.isNumber())
        .map(JsonElement::getAsInt)
        .orElse(1);
  }

  private static String value(JsonObject fields, String name) {
    return fields.get(name) instanceof JsonPrimitive value ? value.getAsString() : "";
  }

  /// Returns the ids of the measurements, oldest first.
  public List<String> data() {
    return measured().stream().map(Measured::id).toList();
  }

  /// Returns the duration of the run; empty while it runs, and if it was killed.
  public Optional<Duration> duration() {
    return json.get("seconds") instanceof JsonPrimitive seconds && seconds.isNumber()
        ? Optional.of(Duration.ofMillis(Math.round(1e3 * seconds.getAsDouble())))
        : Optional.empty();
  }

  /// Returns every parameter as Java source.
  public SequencedMap<String, String> parameters() {
    var values = new LinkedHashMap<String, String>();
    if (json.get("parameters") instanceof JsonObject parameters) {
      for (var each : parameters.entrySet()) {
        values.put(each.getKey(), each.getValue().getAsJsonObject().get("value").getAsString());
      }
    }
    return Collections.unmodifiableSequencedMap(values);
  }

  /// Returns the parameters that the user set, which distinguish runs of one notebook.
  public SequencedMap<String, String> given() {
    var given = new LinkedHashMap<>(parameters());
    given
        .keySet()
        .removeIf(name -> !text("parameters." + name + ".given").orElse("").equals("true"));
    return Collections.unmodifiableSequencedMap(given);
  }

  public String toJson() {
    return GSON.toJson(json) + "\n";
  }

  /// Returns the most useful fields, one line each; [#toJson()] has all.
  public SequencedMap<String, String> summary() {
    return Summary.of(this);
  }

  @Override
  public MimeBundle display() {
    return MimeBundle.text(toString()).with(MimeBundle.HTML, Summary.html(this));
  }

  @Override
  public String toString() {
    return Summary.text(this);
  }
}
