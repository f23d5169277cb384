package braid.launcher.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.evidence.Runs;
import braid.evidence.Study;
import braid.launcher.experiment.Manifest.State;
import braid.model.BraidException;
import braid.model.Overlap;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ExperimentTest {
  private static final String FACTS =
      """
      {"notebook": {"name": "tune.ipynb", "sha256": "ab"}, "git": {"revision": "0123456789abcdef", "dirty": true},
       "parameters": {"m": {"type": "int", "value": "7", "given": true}, "shuffleSeed": {"type": "long", "value": "42L", "given": false}},
       "session": {"ranks": 4, "backend": "host", "why": "no GPU", "link": "1GB/s"},
       "machine": {"processor": "a cpu", "cores": 2, "load": 0.5},
       "jars": [{"path": "/a/lib/x.jar", "bytes": 10, "crc32": "00000001"}]}
      """;

  @TempDir Path runs;

  private static JsonObject facts() {
    return JsonParser.parseString(FACTS).getAsJsonObject();
  }

  private static Study<Overlap> study() {
    var nanos = List.of(5L, 6L);
    return new Study<>(
        new LinkedHashMap<>(Map.of("pattern", "p")),
        2,
        99,
        nanos,
        nanos,
        List.of(new Study.Trial<>(Overlap.pipelined(2), nanos)),
        Overlap.unfused());
  }

  @Test
  void aManifestIsThereFromTheStartAndTellsTheEnd() throws IOException {
    var experiment = new Experiment(runs, _ -> facts());
    assertThat(runs).isEmptyDirectory();
    experiment.begin(Optional.of("{}"));
    var file = experiment.directory().resolve(Manifest.FILE);
    assertThat(Manifest.read(file).state()).isEqualTo(State.RUNNING);
    assertThat(experiment.directory().resolve(Experiment.NOTEBOOK)).hasContent("{}");

    var study = study();
    var entry = Runs.in(runs).save(study);
    experiment.kept(entry, study);
    assertThat(Manifest.read(file).data()).containsExactly(entry.id());
    assertThat(Manifest.read(file).text("seeds.shuffleSeed")).contains("42L");
    assertThat(Manifest.read(file).text("seeds.study " + entry.id())).contains("99");

    experiment.ended(State.FAILED, Optional.of(4), "a time limit");
    experiment.closed();
    experiment.ended(State.COMPLETED, Optional.of(0), "too late");
    var manifest = Manifest.read(file);
    assertThat(manifest.state()).isEqualTo(State.FAILED);
    assertThat(manifest.text("exitCode")).contains("4");
    assertThat(manifest.text("result")).contains("a time limit");
    assertThat(manifest.given()).containsExactly(Map.entry("m", "7"));
    assertThat(manifest.toString())
        .contains("parameters  m = 7, shuffleSeed = 42L")
        .contains("source      0123456789ab, with changes that are not committed");
    assertThat(experiment.directory()).isDirectoryNotContaining("glob:**unfinished");
  }

  /// A run without its process was killed, whatever it wrote last.
  @Test
  void aRunThatWasKilledIsNotRunning() throws Exception {
    var experiment = new Experiment(runs, _ -> facts());
    experiment.begin(Optional.of("{}"));
    var json = experiment.manifest().json();
    var dead = new ProcessBuilder("true").start();
    dead.waitFor();
    json.getAsJsonObject("process").addProperty("pid", dead.pid());
    assertThat(new Manifest(json).state()).isEqualTo(State.KILLED);
    json.getAsJsonObject("process").addProperty("pid", ProcessHandle.current().pid());
    json.getAsJsonObject("process").addProperty("started", "2001-01-01T00:00:00Z");
    assertThat(new Manifest(json).state()).isEqualTo(State.KILLED);
  }

  @Test
  void aClosedSessionHasItsEndAndItsClassPath() throws IOException {
    var jar = Files.writeString(runs.resolve("mine.jar"), "123456789");
    var experiment = new Experiment(runs, _ -> facts());
    experiment.added(jar);
    assertThatThrownBy(experiment::manifest).hasMessageContaining("no manifest yet");
    experiment.begin(Optional.empty());
    experiment.closed();
    assertThat(experiment.manifest().state()).isEqualTo(State.CLOSED);
    var added = experiment.manifest().json().getAsJsonArray("jars").get(1).getAsJsonObject();
    // the check value that every CRC-32 has for these nine characters
    assertThat(added.get("crc32").getAsString()).isEqualTo("cbf43926");
    assertThat(added.get("added").getAsBoolean()).isTrue();
    assertThat(experiment.inNotebook().has("jars")).isFalse();
  }

  @Test
  void runsAreFoundByIdPrefixAndWord() throws IOException {
    var first = begun();
    var second = begun();
    var experiments = new Experiments(runs);
    assertThat(experiments.list()).hasSize(2);
    for (var name :
        List.of(
            first.id(),
            first.id().substring(first.id().length() - 6),
            first.directory().toString(),
            first.directory().resolve(Manifest.FILE).toString())) {
      assertThat(experiments.find(name).manifest().id()).as(name).isEqualTo(first.id());
    }
    var common = first.id().substring(0, 4);
    assertThat(second.id()).startsWith(common);
    assertThatThrownBy(() -> experiments.find(common))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining(
            "a run must be named so that one is meant but \"%s\" is ".formatted(common));
    assertThatThrownBy(() -> experiments.find("nothing"))
        .hasMessage(
            "a run must be one of those in %s but \"nothing\" is none; braid runs lists them"
                .formatted(runs));
    assertThatThrownBy(() -> experiments.find("")).hasMessageContaining("is none");
  }

  private Experiment begun() throws IOException {
    var experiment = new Experiment(runs, _ -> facts());
    experiment.begin(Optional.of("{}"));
    return experiment;
  }

  @Test
  void onlyFactsThatMayChangeTimesAreDifferences() throws IOException {
    var first = begun().manifest();
    assertThat(Differences.between(first, begun().manifest()).all()).isEmpty();

    var changed = first.json();
    changed.addProperty("started", "2001-01-01T00:00:00Z");
    changed.getAsJsonObject("machine").addProperty("load", 1.2);
    changed.getAsJsonObject("machine").addProperty("governor", "powersave");
    changed.getAsJsonObject("git").addProperty("revision", "f".repeat(60));
    changed.getAsJsonObject("parameters").getAsJsonObject("m").addProperty("value", "8");
    changed.getAsJsonObject("parameters").getAsJsonObject("m").addProperty("given", false);
    var jar = changed.getAsJsonArray("jars").get(0).getAsJsonObject();
    jar.addProperty("path", "/elsewhere/x.jar");
    jar.addProperty("crc32", "00000002");
    var differences = Differences.between(first, new Manifest(changed));
    assertThat(differences.all().stream().map(Differences.Difference::what))
        .containsExactlyInAnyOrder("machine.governor", "git.revision", "parameters.m", "jar x.jar");
    changed.getAsJsonObject("machine").addProperty("load", 1.6);
    assertThat(Differences.between(first, new Manifest(changed)).all())
        .contains(new Differences.Difference("load at the start", "0.5", "1.6"));
    assertThat(differences.all())
        .contains(new Differences.Difference("machine.governor", "none", "powersave"));
    assertThat(differences.lines("then", "now"))
        .hasSize(5)
        .anyMatch(line -> line.startsWith("  git.revision ") && line.endsWith("ffff…"));
  }

  /// A field that was renamed or holds something else is named, or not needed.
  @Test
  void aManifestThatSomebodyChangedIsReadOrRefusedByTheNameOfTheField() throws IOException {
    var experiment = begun();
    experiment.kept(Runs.in(runs).save(study()), study());
    var file = experiment.directory().resolve(Manifest.FILE);
    var whole = Manifest.read(file);
    int refused = 0;
    for (var path : paths(whole.json(), new JsonArray())) {
      for (var other : List.of("renamed", "null", "[]", "{}", "\"x\"", "true")) {
        var changed = whole.json();
        change(changed, path.asList(), other);
        Files.writeString(file, changed.toString());
        try {
          var read = Manifest.read(file);
          assertThat(Differences.between(whole, read).all()).isNotNull();
          assertThat(read.toString()).isNotEmpty();
          assertThat(read.given()).isNotNull();
        } catch (BraidException e) {
          refused++;
          assertThat(e.getMessage())
              .doesNotContain("\n")
              .containsAnyOf(file.toString(), whole.id())
              .contains(path.get(path.size() - 1).getAsString());
        }
      }
    }
    assertThat(refused).isGreaterThan(20);
  }

  /// Every field, as the names and numbers that lead to it.
  private static List<JsonArray> paths(JsonElement element, JsonArray before) {
    var all = new ArrayList<JsonArray>();
    if (element instanceof JsonObject object) {
      for (var each : object.entrySet()) {
        var path = before.deepCopy();
        path.add(each.getKey());
        all.add(path);
        all.addAll(paths(each.getValue(), path));
      }
    } else if (element instanceof JsonArray list) {
      for (int i = 0; i < list.size(); i++) {
        var path = before.deepCopy();
        path.add(i);
        all.addAll(paths(list.get(i), path));
      }
    }
    return all;
  }

  private static void change(JsonElement changed, List<JsonElement> path, String other) {
    if (changed instanceof JsonArray list) {
      change(list.get(path.getFirst().getAsInt()), path.subList(1, path.size()), other);
    } else if (path.size() > 1) {
      var next = changed.getAsJsonObject().get(path.getFirst().getAsString());
      change(next, path.subList(1, path.size()), other);
    } else {
      var object = changed.getAsJsonObject();
      var value = object.remove(path.getFirst().getAsString());
      if (other.equals("renamed")) {
        object.add("renamed", value);
      } else {
        object.add(path.getFirst().getAsString(), JsonParser.parseString(other));
      }
    }
  }

  @Test
  void aFileThatIsNoManifestIsRefused() throws IOException {
    var file = Files.writeString(runs.resolve(Manifest.FILE), "{\"format\": \"other\"}");
    assertThatThrownBy(() -> Manifest.read(file))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("must be a manifest (braid.manifest/1) but is not");
    Files.writeString(file, "{");
    assertThatThrownBy(() -> Manifest.read(file)).hasMessageContaining("must be JSON but is not");
  }

  /// A process that has ended, once there is a file, but was not waited for: its parent is a
  /// `sleep`.
  @Test
  void aZombieIsNotRunning() throws Exception {
    var end = runs.resolve("end");
    var commands =
        "until [ -e '%s' ]; do sleep 0.01; done & echo $!; exec sleep 1000 > /dev/null"
            .formatted(end);
    var parent = new ProcessBuilder("sh", "-c", commands).start();
    try (var lines = parent.inputReader()) {
      long pid = Long.parseLong(String.valueOf(lines.readLine()));
      var start = ProcessHandle.of(pid).orElseThrow().info().startInstant().orElseThrow();
      var experiment = new Experiment(runs, _ -> facts());
      experiment.begin(Optional.empty());
      var json = experiment.manifest().json();
      var process = json.getAsJsonObject("process");
      process.addProperty("pid", pid);
      process.addProperty("started", start.truncatedTo(ChronoUnit.SECONDS).toString());
      assertThat(new Manifest(json).state()).isEqualTo(State.RUNNING);
      Files.createFile(end);
      while (!Files.readString(Path.of("/proc", "" + pid, "stat")).contains(") Z ")) {
        Thread.onSpinWait();
      }
      assertThat(new Manifest(json).state()).isEqualTo(State.KILLED);
    } finally {
      parent.destroyForcibly().waitFor();
    }
  }

  /// Reading a revision must not run commands that the repository's configuration names.
  @Test
  void gitRunsNoProgramOfTheRepository() throws Exception {
    var repository = Files.createDirectories(runs.resolve("repository"));
    var ran = runs.resolve("ran");
    var script =
        Files.writeString(runs.resolve("monitor"), "#!/bin/sh\ntouch '%s'\n".formatted(ran));
    assertThat(script.toFile().setExecutable(true)).isTrue();
    var commands =
        """
        git init -q && git config core.fsmonitor '%s' && echo a > a &&
        git -c core.fsmonitor=false add a &&
        git -c core.fsmonitor=false -c user.name=a -c user.email=a@b commit -q -m a
        """
            .formatted(script);
    var made = new ProcessBuilder("sh", "-c", commands).directory(repository.toFile()).inheritIO();
    assertThat(made.start().waitFor()).isZero();
    assertThat(GitState.of(repository, Optional.empty()).get("dirty").getAsBoolean()).isFalse();
    assertThat(ran).doesNotExist();
    var asked = new ProcessBuilder("git", "status", "--porcelain").directory(repository.toFile());
    assertThat(asked.start().waitFor()).isZero();
    assertThat(ran).as("the repository does name a program").exists();
  }
}
