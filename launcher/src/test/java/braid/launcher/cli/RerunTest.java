package braid.launcher.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.Runs;
import braid.evidence.Study;
import braid.internal.report.value.Caveats;
import braid.launcher.cli.experiment.Starts;
import braid.launcher.experiment.Experiment;
import braid.launcher.experiment.Experiments;
import braid.launcher.experiment.Manifest;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import braid.model.Overlap;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Keeps, repeats and compares runs, each command in the directory of the runs.
class RerunTest {
  @TempDir static Path directory;
  private static CommandProcess process;

  @BeforeAll
  static void startProcess() throws IOException {
    process = new CommandProcess(directory);
  }

  @AfterAll
  static void endProcess() throws IOException {
    process.close();
  }

  @BeforeEach
  void deleteEarlierRuns() throws IOException {
    process.clear();
  }

  private Ran braid(String... arguments) throws IOException {
    return process.run(arguments);
  }

  private Experiments experiments() {
    return new Experiments(directory.resolve("runs"));
  }

  @Test
  void aRunIsKeptAndRepeatedThoughItsNotebookIsGone() throws Exception {
    var notebook = directory.resolve("n.ipynb");
    Files.writeString(
        notebook,
        Notebooks.json(
            new Code("int m = 1; double[] x = {1.5};", "parameters"),
            new Code("System.out.println(\"m=\" + m + \" on \" + world.size());")));
    var ran =
        braid(
            "run",
            "n.ipynb",
            "-n",
            "2",
            "--backend",
            "host",
            "-p",
            "m=7",
            "-p",
            "x=2.5",
            "--timeout",
            "60",
            "--output-limit",
            "1MiB");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    var first = experiments().list().getFirst().manifest();
    assertThat(ran.out()).contains("run     " + directory.resolve("runs").resolve(first.id()));
    assertThat(first.state()).isEqualTo(Manifest.State.COMPLETED);
    assertThat(first.text("exitCode")).contains("0");
    assertThat(first.text("parameters.m.type")).contains("int");
    assertThat(first.text("parameters.m.value")).contains("7");
    assertThat(first.text("parameters.x.value")).contains("new double[] {2.5}");
    assertThat(first.text("git.none")).isPresent();
    assertThat(first.json().getAsJsonArray("jars")).isNotEmpty();
    var folder = directory.resolve("runs").resolve(first.id());
    assertThat(ran.out()).contains("saved   " + folder.resolve("n.out.ipynb") + "\n");
    var saved = Notebook.read(folder.resolve("n.out.ipynb")).metadata().getAsJsonObject("braid");
    assertThat(directory.toFile().list()).containsExactlyInAnyOrder("n.ipynb", "runs");
    assertThat(saved.get("id").getAsString()).isEqualTo(first.id());
    assertThat(saved.get("state").getAsString()).isEqualTo("completed");

    Files.delete(notebook);
    var again = braid("rerun", first.id().substring(0, 20), "-o", "again.ipynb");
    assertThat(again.exitCode()).as(again.err()).isZero();
    assertThat(again.err())
        .contains("braid: repeats " + first.id() + "; changed since then:")
        .containsPattern("n\\.ipynb +the kept copy +missing; the kept copy is run");
    assertThat(Files.readString(directory.resolve("again.ipynb"))).contains("m=7 on 2");
    var second = experiments().list().getLast().manifest();
    assertThat(second.text("repeats")).contains(first.id());
    assertThat(second.parameters()).isEqualTo(first.parameters());
    assertThat(second.text("notebook.sha256")).isEqualTo(first.text("notebook.sha256"));
    assertThat(second.text("limits.timeout")).contains("60");
    assertThat(second.text("session.outputLimit")).contains("1MiB");

    var list = braid("runs");
    assertThat(list.out().lines()).hasSize(3);
    assertThat(list.out()).contains(first.id(), second.id(), "m=7 x={2.5}", "completed");
    assertThat(braid("runs", second.id()).out()).contains(", repeats " + first.id());
    var compared = braid("compare", first.id(), second.id());
    assertThat(compared.exitCode()).isEqualTo(2);
    assertThat(compared.err())
        .startsWith("braid: a run must have made a study to be compared but " + first.id())
        .hasLineCount(1);
  }

  @Test
  void aRunThatIsKilledLeavesATrueManifest() throws Exception {
    Files.writeString(
        directory.resolve("n.ipynb"), Notebooks.json(new Code("while (true) Thread.sleep(1);")));
    var ran =
        Ran.apart(
            directory,
            Map.of(),
            (process, line) -> {
              if (line.contains("cell 1 of 1")) {
                // Process.destroyForcibly would close its streams too
                process.toHandle().destroyForcibly();
              }
            },
            "run",
            "n.ipynb",
            "-n",
            "1");
    assertThat(ran.exitCode()).isEqualTo(137);
    var manifest = experiments().list().getFirst().manifest();
    assertThat(manifest.text("state")).contains("running");
    assertThat(manifest.state()).isEqualTo(Manifest.State.KILLED);
    assertThat(braid("runs").out()).contains("killed");
  }

  @Test
  void aRunThatASignalEndsIsRecordedSo() throws Exception {
    Files.writeString(
        directory.resolve("n.ipynb"), Notebooks.json(new Code("while (true) Thread.sleep(1);")));
    var ran =
        Ran.apart(
            directory,
            Map.of(),
            (process, line) -> {
              if (line.contains("cell 1 of 1: while")) {
                process.toHandle().destroy();
              }
            },
            "run",
            "n.ipynb",
            "-n",
            "1");
    assertThat(ran.exitCode()).isEqualTo(143);
    var manifest = experiments().list().getFirst().manifest();
    assertThat(manifest.state()).isEqualTo(Manifest.State.INTERRUPTED);
    assertThat(manifest.text("exitCode")).isEmpty();
    var output = experiments().find("latest").directory().resolve("n.out.ipynb");
    var saved = Notebook.read(output).metadata().getAsJsonObject("braid");
    assertThat(saved.get("state").getAsString()).isEqualTo("interrupted");
  }

  @Test
  void aRunThatFailsIsRepeatedWithItsExitCode() throws Exception {
    Files.writeString(
        directory.resolve("n.ipynb"), Notebooks.json(new Code("throw new Error(\"boom\");")));
    assertThat(braid("run", "n.ipynb", "-n", "1").exitCode()).isEqualTo(1);
    var manifest = experiments().list().getFirst().manifest();
    assertThat(manifest.state()).isEqualTo(Manifest.State.FAILED);
    assertThat(manifest.text("exitCode")).contains("1");
    assertThat(braid("rerun", manifest.id()).exitCode()).isEqualTo(1);
    var missing = braid("rerun", "nothing");
    assertThat(missing.exitCode()).isEqualTo(2);
    assertThat(missing.err()).startsWith("braid: a run must be one of those in").hasLineCount(1);
  }

  private static Study<Overlap> study(String m, double factor, long seed) {
    return study(m, factor, 0.003, seed);
  }

  private static Study<Overlap> study(String m, double factor, double noise, long seed) {
    return study(m, factor, noise, seed, 2, 4);
  }

  private static Study<Overlap> study(
      String m, double factor, double noise, long seed, int... splits) {
    var random = new Random(seed);
    var columns = new ArrayList<List<Long>>();
    for (int column = 0; column < 4; column++) {
      double base = column < 2 ? 100e6 : 80e6 * factor;
      columns.add(
          random
              .doubles(12)
              .mapToObj(_ -> Math.round(base * (1 + noise * random.nextGaussian())))
              .toList());
    }
    return new Study<>(
        new LinkedHashMap<>(Map.of("m", m)),
        2,
        seed,
        columns.get(0),
        columns.get(1),
        List.of(
            new Study.Trial<>(Overlap.pipelined(splits[0]), columns.get(2)),
            new Study.Trial<>(Overlap.pipelined(splits[1]), columns.get(3))),
        Overlap.unfused());
  }

  /// Returns the study as a busy machine would have measured it: every configuration slowed by a
  /// factor of its own.
  private static Study<Overlap> busy(Study<Overlap> study, double ofReference, double... ofTrials) {
    var trials = new ArrayList<Study.Trial<Overlap>>();
    for (var trial : study.trials()) {
      trials.add(
          new Study.Trial<>(trial.configuration(), times(trial.nanos(), ofTrials[trials.size()])));
    }
    return new Study<>(
        study.problem(),
        study.ranks(),
        study.seed(),
        times(study.unfusedFirst(), ofReference),
        times(study.unfusedAgain(), ofReference),
        trials,
        Overlap.unfused());
  }

  private static List<Long> times(List<Long> nanos, double factor) {
    return nanos.stream().map(n -> Math.round(factor * n)).toList();
  }

  /// Records a run with these studies, as `braid run` does.
  private String run(String revision, Study<?>... studies) throws IOException {
    return run(revision, true, studies);
  }

  /// @param inside whether its measurements lie in its folder; earlier versions kept them beside it
  private String run(String revision, boolean inside, Study<?>... studies) throws IOException {
    return run(new JsonObject(), revision, inside, studies);
  }

  private String run(JsonObject facts, String revision, boolean inside, Study<?>... studies)
      throws IOException {
    var git = new JsonObject();
    git.addProperty("revision", revision);
    facts.add("git", git);
    var runs = directory.resolve("runs");
    var experiment = new Experiment(runs, _ -> facts);
    experiment.begin(Optional.of("{}"));
    for (var study : studies) {
      experiment.kept(Runs.in(inside ? experiment.directory() : runs).save(study), study);
    }
    experiment.ended(Manifest.State.COMPLETED, Optional.of(0), "fine");
    return experiment.id();
  }

  @Test
  void comparingSaysWhatGotSlowerAndExitsWith6() throws Exception {
    var base = run("one", false, study("64", 1, 1), study("128", 1, 2));
    var same = run("one", study("64", 1, 3), study("128", 1, 4));
    var slower = run("two", study("128", 1.1, 5), study("64", 1, 6), study("256", 1, 7));

    var fine = braid("compare", base, same);
    assertThat(fine.exitCode()).as(fine.out() + fine.err()).isZero();
    assertThat(fine.out())
        .contains("nothing that is recorded differs", "SAME: of 3 configurations");

    var worse = braid("compare", base, slower);
    assertThat(worse.exitCode()).isEqualTo(6);
    assertThat(worse.out())
        .containsPattern("git.revision +one +two")
        .containsPattern("SLOW: of 3 configurations 2 slower \\(\\d splits by ")
        .contains("not compared: 1 study, because the runs do not share the problem or its");
    assertThat(braid("compare", slower, base).exitCode()).isZero();
    assertThat(braid("compare", base, slower, "--threshold", "20").exitCode()).isZero();

    var json = braid("compare", base, slower, "--json");
    assertThat(json.exitCode()).isEqualTo(6);
    var read = JsonParser.parseString(json.out()).getAsJsonObject();
    assertThat(read.get("verdict").getAsString()).isEqualTo("SLOW");
    assertThat(read.getAsJsonArray("studies")).hasSize(2);
    assertThat(read.getAsJsonArray("differences")).hasSize(1);

    for (var run : List.of(base, same)) {
      var study = experiments().find(run).manifest().data().getFirst();
      var alone = braid("compare", study, base.substring(base.length() - 6));
      assertThat(alone.exitCode()).as(alone.err()).isZero();
      assertThat(alone.out()).contains("nothing that is recorded differs");
    }
  }

  /// A search keeps the candidates that were fast that day.
  @Test
  void aSearchThatEndedWithOtherCandidatesHidesNoOtherStudy() throws Exception {
    var search = study("64", 1, 0.003, 2, 8, 16);
    var base = run("one", study("64", 1, 1), study("128", 1, 3));
    var slower = run("one", search, study("128", 1.1, 4));
    var ran = braid("compare", base, slower);
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(6);
    assertThat(ran.out())
        .contains("SLOW: of 3 configurations 2 slower")
        .contains("not compared: 2 studies, because the runs do not share the problem or its");

    var json = JsonParser.parseString(braid("compare", base, slower, "--json").out());
    assertThat(json.getAsJsonObject().get("studiesNotCompared").getAsInt()).isEqualTo(2);

    var alone = run("one", search);
    var nothing = braid("compare", base, alone);
    assertThat(nothing.exitCode()).isEqualTo(2);
    assertThat(nothing.err())
        .startsWith("braid: two studies must share a configuration but the first has 2 splits,")
        .hasLineCount(1);
  }

  /// The first study of two starts cannot be pooled; the second one is pooled with the second one
  /// of the run beside them.
  @Test
  void startsThatShareNoCandidatesOfASearchArePooledInTheOtherStudies() throws Exception {
    var first = run("one", study("64", 1, 1), study("128", 1, 3));
    var facts = new JsonObject();
    facts.addProperty("startOf", first);
    run(facts, "one", true, study("64", 1, 0.003, 2, 8, 16), study("128", 1, 4));
    var single = run("one", study("64", 1, 5), study("128", 1, 6));
    var judged = run("one", study("64", 1, 7), study("128", 1, 8));

    var ran = braid("compare", first + "," + single, judged);
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.out())
        .containsOnlyOnce("of 3 configurations")
        .contains("not compared: 2 studies, because the runs do not share the problem or its");
    var out = new StringWriter();
    Starts.print(List.of(directory.resolve("runs").resolve(first)), new PrintWriter(out));
    assertThat(out.toString())
        .containsPattern("starts  .*fastest in 2 starts")
        .contains("starts  not pooled: 1 study, because the starts do not share the problem");
  }

  /// Reported case: `unfused SLOW +59.6%`, exit code 6, although only the load had changed.
  @Test
  void aMachineThatDifferedExitsWith5() throws Exception {
    var base = run(machine(0.4), "one", true, study("64", 1, 1));
    var busy = run(machine(9.3), "one", true, busy(study("64", 1, 2), 1.6, 1.9, 2.1));
    var ran = braid("compare", base, busy, "--junit", "busy.xml");
    assertThat(ran.exitCode()).as(ran.out() + ran.err()).isEqualTo(5);
    assertThat(ran.err())
        .startsWith(
            "braid: the machine differed between the runs, so some configurations cannot be")
        .endsWith("braid compare --interleave %s %s\n".formatted(base, busy))
        .hasLineCount(1);
    assertThat(ran.out())
        .containsPattern("load at the start +0\\.4 +9\\.3\n")
        .containsPattern("MACHINE_DIFFERED: the reference itself took \\d+\\.\\d% longer")
        .contains("2 cannot be judged")
        .doesNotContain("SLOW", "FAST");
    assertThat(directory.resolve("busy.xml"))
        .content()
        .contains("tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"3\"")
        .containsPattern("<skipped message=\"MACHINE_DIFFERED: .*; ÷ reference \\+\\d+\\.\\d%");
    var json = JsonParser.parseString(braid("compare", base, busy, "--json").out());
    assertThat(json.getAsJsonObject().get("verdict").getAsString()).isEqualTo("MACHINE_DIFFERED");
    var study = json.getAsJsonObject().getAsJsonArray("studies").get(0).getAsJsonObject();
    assertThat(study.get("referenceMoved").getAsBoolean()).isTrue();
    assertThat(
            study
                .getAsJsonArray("configurations")
                .get(1)
                .getAsJsonObject()
                .get("besideReference")
                .getAsDouble())
        .isBetween(0.1, 0.3);

    assertThat(braid("compare", base, busy, "--absolute").exitCode()).isEqualTo(6);
    var alike = run(machine(0.6), "one", true, busy(study("64", 1, 3), 1.6, 1.6, 1.6));
    var same = braid("compare", base, alike);
    assertThat(same.exitCode()).as(same.out()).isZero();
    assertThat(same.out())
        .contains("nothing that is recorded differs")
        .contains("SAME: the reference itself took");
  }

  private static JsonObject machine(double load) {
    return JsonParser.parseString("{\"machine\": {\"cores\": 2, \"load\": %s}}".formatted(load))
        .getAsJsonObject();
  }

  @Test
  void latestMeansARunWithAStudyOfTheSameNotebook() throws Exception {
    var first = run(notebook("tune.ipynb"), "one", true, study("64", 1, 1));
    var second = run(notebook("tune.ipynb"), "one", true, study("64", 1, 2));
    run(notebook("tune.ipynb"), "one", true);
    var other = run(notebook("other.ipynb"), "one", true, study("128", 1, 3));

    var named = braid("compare", first, "latest");
    assertThat(named.exitCode()).as(named.err()).isZero();
    assertThat(named.out()).contains("second  " + second + "\n");
    var given = braid("compare", "previous", "latest", "--notebook", "tune");
    assertThat(given.exitCode()).as(given.err()).isZero();
    assertThat(given.out()).contains("first   " + first + "\n", "second  " + second + "\n");
    assertThat(braid("compare", "previous", "latest").err())
        .startsWith(
            "braid: previous must be a run with a study of other.ipynb before the latest one in ")
        .hasLineCount(1);
    assertThat(braid("compare", other, "latest").err())
        .isEqualTo(
            "braid: two runs must be compared but %s and latest are both %s; braid run or braid rerun makes another\n"
                .formatted(other, other));
    assertThat(braid("runs", "--notebook", "a/tune.ipynb").out().lines()).hasSize(4);
    assertThat(braid("runs", "--notebook", "none").out()).startsWith("no runs of none in ");
  }

  private static JsonObject notebook(String name) {
    return JsonParser.parseString(
            "{\"notebook\": {\"name\": \"%s\", \"path\": \"/home/a/%s\"}}".formatted(name, name))
        .getAsJsonObject();
  }

  /// Writes a notebook that times two waits, the second one longer by a parameter.
  private void writeWaiting() throws IOException {
    Files.writeString(
        directory.resolve("n.ipynb"),
        Notebooks.json(
            new Code("int wait = 0;", "parameters"),
            new Code(
                "Tuner.on(world).steps(\"waiting\").step(\"short\", () ->"
                    + " java.util.concurrent.locks.LockSupport.parkNanos(100_000)).step(\"long\","
                    + " () -> java.util.concurrent.locks.LockSupport.parkNanos(20_000_000 + wait))"
                    + ".repeats(6).run()")));
  }

  /// Two runs of other parameters, repeated in turns: the rounds of all turns are compared.
  @Test
  void twoRunsAreRepeatedInTurnsAndCompared() throws Exception {
    writeWaiting();
    for (var wait : List.of("0", "50000000")) {
      var ran = braid("run", "n.ipynb", "-n", "1", "--backend", "host", "-p", "wait=" + wait);
      assertThat(ran.exitCode()).as(ran.err()).isZero();
    }
    var ran = braid("compare", "previous", "latest", "--interleave", "--turns", "2", "--absolute");
    assertThat(ran.err())
        .containsSubsequence(
            "braid: turn 1 of 2, A\n",
            "braid: turn 1 of 2, B\n",
            "braid: turn 2 of 2, B\n",
            "braid: turn 2 of 2, A\n");
    var all = experiments().list();
    assertThat(all).hasSize(6);
    var ids = all.stream().map(run -> run.manifest().id()).toList();
    assertThat(all.stream().map(run -> run.manifest().text("repeats").orElse("none")))
        .containsExactly("none", "none", ids.get(0), ids.get(1), ids.get(1), ids.get(0));
    assertThat(ran.out())
        .contains("first   %s, %s\n".formatted(ids.get(2), ids.get(5)))
        .contains("second  %s, %s\n".formatted(ids.get(3), ids.get(4)))
        .containsPattern("parameters.wait +0 +50000000");
    assertThat(ran.exitCode()).as(ran.out()).isEqualTo(6);

    assertThat(braid("compare", "previous", "latest", "--turns", "2").err())
        .isEqualTo("braid: --turns has no effect without --interleave; add it\n");
    assertThat(braid("compare", "previous", "latest", "--interleave", "--turns", "0").err())
        .isEqualTo("braid: --turns must be 1..100 but was 0; try --turns 3\n");
    var alone = run(new JsonObject(), "one", false, study("64", 1, 1));
    var study = experiments().find(alone).manifest().data().getFirst();
    Files.delete(directory.resolve("runs").resolve(alone).resolve(Manifest.FILE));
    assertThat(braid("compare", study, "latest", "--interleave").err())
        .startsWith("braid: what is repeated must be a run but %s is a study".formatted(study));
  }

  @Test
  void startsArePooled() throws Exception {
    writeWaiting();
    for (var wait : List.of("0", "50000000")) {
      var ran =
          braid(
              "run",
              "n.ipynb",
              "-n",
              "1",
              "--backend",
              "host",
              "-p",
              "wait=" + wait,
              "--starts",
              "5");
      assertThat(ran.exitCode()).as(ran.err()).isZero();
      assertThat(ran.err()).contains("braid: start 2 of 5 of ", "braid: start 5 of 5 of ");
      assertThat(ran.out()).containsPattern("\\nstarts  .*; fastest in 5 starts: short");
    }
    var all = experiments().list();
    assertThat(all).hasSize(10);
    var ids = all.stream().map(run -> run.manifest().id()).toList();
    for (int run = 0; run < 10; run++) {
      assertThat(all.get(run).manifest().firstStart()).isEqualTo(ids.get(run / 5 * 5));
    }
    assertThat(braid("runs", ids.get(9)).out()).contains(", a start of " + ids.get(5));
    var ran = braid("compare", "previous", "latest", "--absolute", "--json");
    assertThat(ran.exitCode()).as(ran.out()).isEqualTo(6);
    assertThat(ran.out()).contains("\"starts\": 5");
    assertThat(braid("compare", ids.get(2), ids.get(8)).out())
        .contains("first   " + String.join(", ", ids.subList(0, 5)) + "\n")
        .contains("5 starts each");
    assertThat(braid("compare", ids.get(0) + "," + ids.get(2), ids.get(8)).err())
        .isEqualTo(
            "braid: runs that are pooled must be different but %s is among them twice; name each once, and of several starts one\n"
                .formatted(ids.get(0)));
    var manifest = directory.resolve("runs").resolve(ids.get(3)).resolve(Manifest.FILE);
    Files.writeString(manifest, Files.readString(manifest).replace("\"completed\"", "\"failed\""));
    assertThat(braid("compare", ids.get(0), ids.get(8)).out())
        .contains(
            "first   %s, %s, %s, %s\n".formatted(ids.get(0), ids.get(1), ids.get(2), ids.get(4)));
    assertThat(braid("run", "n.ipynb", "--starts", "0").err())
        .isEqualTo("braid: --starts must be 1..100 but was 0; try --starts 8\n");
  }

  /// A study of equal steps that its own budget of nothing leaves undecided.
  @Test
  void studiesMeasureOnUntilTheyAreDecidedOrTheTimeIsOver() throws Exception {
    Files.writeString(
        directory.resolve("n.ipynb"),
        Notebooks.json(
            new Code(
                "Tuner.on(world).steps(\"waiting\").step(\"long\", () ->"
                    + " java.util.concurrent.locks.LockSupport.parkNanos(900_000)).step(\"short\","
                    + " () -> java.util.concurrent.locks.LockSupport.parkNanos(100_000))"
                    + ".budget(Duration.ZERO).run()")));
    var ran = braid("run", "n.ipynb", "-n", "1", "--backend", "host", "--until-decided", "1m");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.out()).containsPattern("\nfound   .*\ndecided 1 of 1 study\n");
    var manifest = experiments().find("latest").manifest();
    assertThat(manifest.text("session.untilDecidedSeconds")).contains("60");
    assertThat(manifest.measured().getFirst().decided()).isTrue();
  }

  @Test
  void timesOfSharedGpusAreNotComparedAndExitWith0() throws Exception {
    var base = run("one", study("64", 1, 1));
    var shared = run("one", shared(study("64", 1.5, 2)));
    for (var sides : List.of(List.of(base, shared), List.of(shared, base))) {
      var ran =
          braid(
              "compare",
              sides.getFirst(),
              sides.getLast(),
              "--fail-on-undecided",
              "--junit",
              "shared.xml");
      assertThat(ran.exitCode()).as(ran.err()).isZero();
      assertThat(ran.out())
          .contains(Caveats.SHARED + "; the times of 3 configurations are not compared")
          .doesNotContain("FAST", "SLOW");
      assertThat(directory.resolve("shared.xml"))
          .content()
          .contains("tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"3\"")
          .contains("<skipped message=\"" + Caveats.SHARED)
          .doesNotContain("FAST", "SLOW");
    }
    var json = braid("compare", base, shared, "--json");
    assertThat(json.exitCode()).isZero();
    assertThat(json.out()).doesNotContain("FAST", "SLOW", "difference\"");
    var read = JsonParser.parseString(json.out()).getAsJsonObject();
    assertThat(read.get("verdict").getAsString()).isEqualTo("NOT_COMPARED");
    assertThat(read.getAsJsonArray("studies").get(0).getAsJsonObject().get("times").getAsString())
        .isEqualTo(Caveats.SHARED);
    assertThat(braid("runs").out()).contains(Caveats.SHARED);
  }

  private static Study<Overlap> shared(Study<Overlap> study) {
    var problem = new LinkedHashMap<>(study.problem());
    Caveats.put(2, problem);
    return new Study<>(
        problem,
        study.ranks(),
        study.seed(),
        study.unfusedFirst(),
        study.unfusedAgain(),
        study.trials(),
        Overlap.unfused());
  }

  @Test
  void theListShowsResultsAndPruneDeletesOldRuns() throws Exception {
    var beside = run("one", false, study("64", 1, 1));
    var inside = run("one", study("64", 1, 2), study("128", 1, 3));
    var last = run("one");
    var runs = directory.resolve("runs");
    var data = experiments().find(beside).manifest().data().getFirst();
    var list = braid("runs").out().lines().toList();
    assertThat(list.getFirst()).endsWith("  headline");
    assertThat(list.get(1)).contains("completed  4 splits: ", "% less than unfused's ");
    assertThat(list.get(2)).endsWith("(+1 more)");
    assertThat(list.get(3)).endsWith("completed  -");

    assertThat(braid("runs", "prune").err())
        .isEqualTo(
            "braid: prune needs --keep or --older-than but has neither; try braid runs prune --keep"
                + " 20\n");
    assertThat(braid("runs", "prune", "--older-than", "1").out()).contains(": 0 runs, 0.0 MB");
    var would = braid("runs", "prune", "--keep", "1", "--dry-run");
    assertThat(would.out()).contains("would delete  " + beside, "would delete  " + inside);
    assertThat(runs.resolve(data)).isDirectory();

    var mine = Files.createDirectories(runs.resolve("notes"));
    var pruned = braid("runs", "prune", "--keep", "1");
    assertThat(pruned.exitCode()).as(pruned.err()).isZero();
    assertThat(pruned.out()).contains("deleted  " + beside, "deleted  " + inside, ": 2 runs, ");
    try (var left = Files.list(runs)) {
      assertThat(left).containsExactlyInAnyOrder(mine, runs.resolve(last));
    }
  }

  /// As `base64` prints it, with line ends.
  @Test
  void parametersComeInBase64() throws Exception {
    Files.writeString(
        directory.resolve("n.ipynb"),
        Notebooks.json(new Code("int m = 1;", "parameters"), new Code("System.out.println(m);")));
    var text = Base64.getMimeEncoder(4, new byte[] {'\n'}).encodeToString("{m: 9}".getBytes(UTF_8));
    assertThat(braid("run", "n.ipynb", "-n", "1", "-b", text).exitCode()).isZero();
    assertThat(experiments().find("latest").manifest().given()).containsEntry("m", "9");

    var wrong = braid("run", "n.ipynb", "-b", "{m: 9}");
    assertThat(wrong.exitCode()).isEqualTo(2);
    assertThat(wrong.err()).startsWith("braid: -b must be YAML in base64 but was {m: 9} (");
  }

  /// A manifest that names folders elsewhere deletes none of them.
  @Test
  void pruneDeletesNothingElsewhere() throws Exception {
    var mine = Files.createDirectories(directory.resolve("mine"));
    var run = run("one");
    var manifest = directory.resolve("runs").resolve(run).resolve(Manifest.FILE);
    var json = Files.readString(manifest);
    assertThat(json).contains("\"data\": []");
    Files.writeString(
        manifest,
        json.replace("\"data\": []", "\"data\": [{\"id\": \"../mine\"}, {\"id\": \"..\"}]"));
    assertThat(braid("runs", "prune", "--keep", "0").out()).contains("deleted  " + run);
    assertThat(mine).isDirectory();
    assertThat(directory.resolve("runs")).isEmptyDirectory();
  }

  @Test
  void theLatestRunAndTheOneBeforeHaveNames() throws Exception {
    var none = braid("runs", "latest");
    assertThat(none.exitCode()).isEqualTo(2);
    assertThat(none.err())
        .isEqualTo(
            "braid: latest must be a run in %s but that has 0; braid run makes one\n"
                .formatted(directory.toRealPath().resolve("runs")));
    var base = run("one", study("64", 1, 1));
    var alone = braid("compare", "previous", "latest");
    assertThat(alone.exitCode()).isEqualTo(2);
    assertThat(alone.err())
        .contains(
            "previous must be a run with a study of a session in Jupyter before the latest one in ")
        .contains("but that has one; run it again, or name two runs")
        .hasLineCount(1);
    var slower = run("two", study("64", 1.1, 2));

    assertThat(braid("runs", "latest").out()).contains(slower).doesNotContain(base);
    assertThat(braid("runs", "previous").out()).contains(base).doesNotContain(slower);
    var compared = braid("compare", "previous", "latest");
    assertThat(compared.out()).contains("first   " + base + "\n", "second  " + slower + "\n");
    assertThat(compared.exitCode()).isEqualTo(6);
    assertThat(compared.err()).endsWith("braid: 2 configurations are slower\n");
    assertThat(braid("rerun", "latest", "-o", "none/o.ipynb").err()).doesNotContain("latest");
  }

  @Test
  void undecidedFailsWhereThatIsAskedFor() throws Exception {
    var base = run("one", study("64", 1, 0.08, 1));
    var same = run("one", study("64", 1, 0.08, 2));
    var lenient = braid("compare", base, same, "--junit", "lenient.xml");
    assertThat(lenient.exitCode()).isZero();
    assertThat(lenient.out()).contains("UNDECIDED: of 3 configurations 3 undecided", "more rounds");
    assertThat(directory.resolve("lenient.xml"))
        .content()
        .contains("tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"3\"")
        .containsPattern(
            "<skipped message=\"UNDECIDED: \\d.* ms to .*about \\d+ more rounds would decide");

    var strict =
        braid("compare", base, same, "--fail-on-undecided", "--junit", "strict.xml", "--json");
    assertThat(strict.exitCode()).isEqualTo(6);
    assertThat(strict.err())
        .endsWith(
            "braid: 3 configurations are undecided, none is slower; measure more rounds, or leave"
                + " out --fail-on-undecided\n");
    assertThat(directory.resolve("strict.xml"))
        .content()
        .contains("tests=\"3\" failures=\"3\" errors=\"0\" skipped=\"0\"")
        .contains("<failure type=\"UNDECIDED\"");
    var rows = JsonParser.parseString(strict.out()).getAsJsonObject().getAsJsonArray("studies");
    var row = rows.get(0).getAsJsonObject().getAsJsonArray("configurations").get(0);
    assertThat(row.getAsJsonObject().get("moreRounds").getAsInt()).isPositive();

    var quiet = run("one", study("64", 1, 0.003, 4));
    var slower = run("one", study("64", 1.5, 0.003, 3));
    assertThat(braid("compare", quiet, slower, "--junit", "slow.xml").exitCode()).isEqualTo(6);
    assertThat(directory.resolve("slow.xml"))
        .content()
        .contains("failures=\"2\"", "<failure type=\"SLOW\"", "name=\"2 splits\"");
    assertThat(braid("compare", base, same, "--junit", "none/j.xml").err())
        .startsWith("braid: --junit must be a file to write but none/j.xml is in a directory");
  }

  @Test
  void studiesOfDifferentProblemsAreNotCompared() throws Exception {
    var small = run("one", study("64", 1, 1));
    var large = run("one", study("128", 1, 1));
    var ran = braid("compare", small, large);
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err())
        .isEqualTo(
            "braid: two studies must be of one problem to be compared but differ in m: 64 and 128;"
                + " compare runs with the same sizes\n");
    var misused = braid("compare", small, large, "--threshold", "lots");
    assertThat(misused.exitCode()).isEqualTo(2);
    assertThat(misused.err())
        .startsWith("braid: --threshold must be a number of percent")
        .hasLineCount(1);
  }
}
