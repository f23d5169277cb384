package braid.launcher.experiment;

import braid.evidence.Evidence;
import braid.evidence.Runs;
import braid.evidence.Study;
import braid.launcher.experiment.Manifest.State;
import braid.model.BraidException;
import braid.model.Host;
import braid.natives.WholeFile;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// A run that writes its manifest, `runs/<id>/manifest.json`: from before the first cell on, and
/// complete at every moment. A killed run leaves one with the state `running`, a process that is
/// gone, and all measurements until then.
public final class Experiment {
  /// The notebook as it was run, beside the manifest.
  public static final String NOTEBOOK = "notebook.ipynb";

  private final Path runs;
  private final Function<Path, JsonObject> facts;
  private final String id;
  private final List<Path> addedJars = new ArrayList<>();
  private List<Host> hosts = List.of();
  private @Nullable JsonObject json;

  /// Receives the result of each measurement.
  private Consumer<String> found = _ -> {};

  private boolean ofNotebook;
  private boolean ended;

  /// Does nothing until [#begin].
  ///
  /// @param facts returns the manifest's first fields, given the run's folder: notebook,
  ///   parameters, surroundings
  public Experiment(Path runs, Function<Path, JsonObject> facts) {
    this.runs = runs;
    this.facts = facts;
    id = Runs.newId(Instant.now());
  }

  public String id() {
    return id;
  }

  public Path directory() {
    return runs.resolve(id);
  }

  /// @param notebook source of the notebook; empty for a session in Jupyter
  public synchronized void begin(Optional<String> notebook) throws IOException {
    var begun = new JsonObject();
    begun.addProperty("format", Manifest.FORMAT);
    begun.addProperty("id", id);
    begun.addProperty("state", State.RUNNING.word());
    begun.addProperty("started", Instant.now().truncatedTo(ChronoUnit.MILLIS).toString());
    begun.add("process", process());
    facts.apply(directory()).asMap().forEach(begun::add);
    seeds(begun);
    putHosts(begun);
    begun.add("data", new JsonArray());
    Files.createDirectories(directory());
    ofNotebook = notebook.isPresent();
    if (ofNotebook) {
      write(NOTEBOOK, notebook.get());
    }
    json = begun;
    write();
    var early = List.copyOf(addedJars);
    addedJars.clear();
    for (var jar : early) {
      added(jar);
    }
  }

  /// Records the hosts of ranks that another program started, once they run.
  public synchronized void onHosts(List<Host> found) throws IOException {
    hosts = List.copyOf(found);
    var begun = json;
    if (begun != null) {
      putHosts(begun);
      write();
    }
  }

  private void putHosts(JsonObject begun) {
    if (hosts.isEmpty()) {
      return;
    }
    var byName = new JsonObject();
    for (var host : hosts) {
      var ranks = new JsonArray();
      host.ranks().forEach(ranks::add);
      byName.add(host.name(), ranks);
    }
    begun.add(Manifest.HOSTS, byName);
  }

  private static JsonObject process() {
    var self = ProcessHandle.current();
    var process = new JsonObject();
    process.addProperty("pid", self.pid());
    self.info()
        .startInstant()
        .ifPresent(
            start ->
                process.addProperty("started", start.truncatedTo(ChronoUnit.SECONDS).toString()));
    return process;
  }

  /// Adds parameters with `seed` in their name; the tuner's seeds come with its studies.
  private static void seeds(JsonObject begun) {
    var seeds = new JsonObject();
    if (begun.get("parameters") instanceof JsonObject parameters) {
      for (var each : parameters.entrySet()) {
        if (each.getKey().toLowerCase(Locale.ROOT).contains("seed")) {
          seeds.add(each.getKey(), each.getValue().getAsJsonObject().get("value"));
        }
      }
    }
    begun.add("seeds", seeds);
  }

  /// Returns true once a manifest exists.
  public synchronized boolean hasBegun() {
    return json != null;
  }

  /// Sets what receives the result of each measurement, in a line, when it is saved.
  public synchronized void tell(Consumer<String> listener) {
    found = listener;
  }

  /// Adds a saved measurement to the manifest.
  public synchronized void kept(Runs.SavedRun savedRun, Evidence evidence) throws IOException {
    var begun = json;
    if (begun == null) {
      return;
    }
    var data = new JsonObject();
    data.addProperty("id", savedRun.id());
    data.addProperty("kind", savedRun.kind().name().toLowerCase(Locale.ROOT));
    data.addProperty("found", savedRun.headline());
    begun.getAsJsonArray("data").add(data);
    var problem = "";
    if (evidence instanceof Study<?> study) {
      problem = study.setting();
      data.addProperty("problem", problem);
      data.addProperty("load", Surroundings.load());
      data.addProperty("decided", study.isDecided());
      begun.getAsJsonObject("seeds").addProperty("study " + savedRun.id(), study.seed());
    }
    write();
    found.accept(Manifest.answer(problem, savedRun.headline()));
  }

  /// Adds a jar that the notebook put on the class path.
  public synchronized void added(Path jar) throws IOException {
    var begun = json;
    if (begun == null) {
      addedJars.add(jar);
      return;
    }
    var added = Jars.one(jar);
    added.addProperty("added", true);
    if (!(begun.get("jars") instanceof JsonArray)) {
      begun.add("jars", new JsonArray());
    }
    begun.getAsJsonArray("jars").add(added);
    write();
  }

  /// Writes the end of the run. Later calls have no effect.
  ///
  /// @param result one line for readers
  public synchronized void ended(State state, Optional<Integer> exitCode, String result)
      throws IOException {
    var begun = json;
    if (begun == null || ended) {
      return;
    }
    ended = true;
    var end = Instant.now().truncatedTo(ChronoUnit.MILLIS);
    var started = Instant.parse(begun.get("started").getAsString());
    begun.addProperty("state", state.word());
    begun.addProperty("ended", end.toString());
    begun.addProperty("seconds", Duration.between(started, end).toMillis() / 1e3);
    exitCode.ifPresent(code -> begun.addProperty("exitCode", code));
    begun.addProperty("result", result);
    write();
  }

  /// Ends a session in Jupyter. Runs of notebooks call [#ended] themselves.
  public synchronized void closed() throws IOException {
    if (!ofNotebook) {
      ended(State.CLOSED, Optional.empty(), "the session was closed");
    }
  }

  /// Returns the manifest in its present state.
  ///
  /// @throws BraidException if the run has not begun
  public synchronized Manifest manifest() {
    var begun = json;
    if (begun == null) {
      throw new BraidException("there is no manifest yet; it begins with what is measured");
    }
    return new Manifest(begun);
  }

  /// Returns the manifest for the metadata of the output notebook, without its long list of jars.
  public synchronized JsonObject inNotebook() {
    var shown = manifest().json();
    shown.remove("jars");
    shown.addProperty("manifest", directory().resolve(Manifest.FILE).toString());
    return shown;
  }

  private void write() throws IOException {
    write(Manifest.FILE, manifest().toJson());
  }

  private void write(String name, String content) throws IOException {
    WholeFile.write(directory().resolve(name), content);
  }
}
