package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.Runs;
import braid.evidence.Study;
import braid.launcher.experiment.Experiment;
import braid.launcher.experiment.Experiments;
import braid.launcher.experiment.Manifest;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.SequencedMap;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Judges runs against rolling baselines, refuses impossible times, and compares two values of a
/// variable in turns.
class GateTest {
  private static final Pattern HEADLINE =
      Pattern.compile("(?m)^(SLOW|FAST|SAME|UNDECIDED|MACHINE_DIFFERED): ");

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

  private static Study<Overlap> study(double factor, long seed) {
    return study(new LinkedHashMap<>(Map.of("m", "64")), factor, seed);
  }

  private static Study<Overlap> study(
      SequencedMap<String, String> problem, double factor, long seed) {
    var random = new Random(seed);
    var columns = new ArrayList<List<Long>>();
    for (int column = 0; column < 3; column++) {
      double base = column < 2 ? 100e6 : 80e6 * factor;
      columns.add(
          random
              .doubles(12)
              .mapToObj(_ -> Math.round(base * (1 + 0.003 * random.nextGaussian())))
              .toList());
    }
    return new Study<>(
        problem,
        2,
        seed,
        columns.get(0),
        columns.get(1),
        List.of(new Study.Trial<>(Overlap.pipelined(2), columns.get(2))),
        Overlap.unfused());
  }

  /// Records a run of a notebook at a revision, as `braid run` does.
  private String run(String notebook, String revision, Study<?> study) throws IOException {
    var facts =
        JsonParser.parseString(
                """
                {"notebook": {"name": "%s", "path": "/a/%s"}, "git": {"revision": "%s"},
                 "machine": {"cores": 2, "load": %s}}"""
                    .formatted(notebook, notebook, revision, study.seed() % 2))
            .getAsJsonObject();
    var experiment = new Experiment(directory.resolve("runs"), _ -> facts);
    experiment.begin(Optional.of("{}"));
    experiment.kept(Runs.in(experiment.directory()).save(study), study);
    experiment.ended(Manifest.State.COMPLETED, Optional.of(0), "fine");
    return experiment.id();
  }

  @Test
  void theNewestRunsOfOneStateAreABaseline() throws Exception {
    run("tune.ipynb", "zero", study(2, 1));
    var first = run("tune.ipynb", "one", study(1, 2));
    run("tune.ipynb", "two", study(3, 3));
    run("other.ipynb", "one", study(3, 4));
    var second = run("tune.ipynb", "one", study(1, 5));
    var third = run("tune.ipynb", "one", study(1, 6));
    var judged = run("tune.ipynb", "new", study(1.1, 7));

    var slower = braid("compare", "last:5", "latest", "--csv", "rows.csv");
    assertThat(slower.exitCode()).as(slower.out() + slower.err()).isEqualTo(6);
    assertThat(slower.out())
        .contains("first   %s, %s, %s\n".formatted(first, second, third))
        .contains("second  " + judged + "\n")
        .containsPattern("git.revision +one +new");
    assertThat(Files.readAllLines(directory.resolve("rows.csv")))
        .hasSize(3)
        .anyMatch(
            line ->
                line.startsWith(
                    "\"study\",\"configuration\",\"verdict\",\"first ms\",\"second ms\","))
        .anyMatch(
            line ->
                line.matches(
                    "\"m 64.*\",\"pipelined, 2 splits\",\"SLOW\",\"80\\.\\d+\",\"88\\..*"));
    var two = braid("compare", "last:2", judged);
    assertThat(two.out()).contains("first   %s, %s\n".formatted(second, third));
    var listed = braid("compare", first + "," + third, second);
    assertThat(listed.exitCode()).as(listed.err()).isZero();
    assertThat(listed.out()).contains("first   %s, %s\n".formatted(first, third));

    assertThat(braid("compare", "last:0", "latest").err())
        .isEqualTo(
            "braid: a rolling baseline must be last:1 to last:100 but was last:0; try last:5\n");
    assertThat(braid("compare", "latest", "last:2").err())
        .startsWith("braid: last:5 means several runs, which are a baseline but was B");
    assertThat(braid("compare", "last:5", "latest", "--notebook", "other").err())
        .startsWith("braid: a rolling baseline must be a completed run with a study of other in ")
        .hasLineCount(1);
  }

  @Test
  void impossibleTimesAreComparedWithNothing() throws Exception {
    var h200 =
        new LinkedHashMap<>(GemmSpec.allGatherGemm(8192, 28672, 81920).dtype(DType.BF16).columns());
    h200.put("backend", "cuda");
    h200.put("device", "NVIDIA H200");
    var fine = run("tune.ipynb", "one", study(h200, 1, 1));
    var wrong = run("tune.ipynb", "one", study(h200, 0.05, 2));
    var ran = braid("compare", fine, wrong, "--junit", "wrong.xml", "--json");
    assertThat(ran.exitCode()).as(ran.out()).isEqualTo(2);
    assertThat(ran.err())
        .startsWith("braid: IMPOSSIBLE_RATE: pipelined, 2 splits, all-gather")
        .endsWith("above the H200's 989 TFLOP/s\n")
        .hasLineCount(1);
    var json = JsonParser.parseString(ran.out()).getAsJsonObject();
    assertThat(json.has("verdict")).isFalse();
    assertThat(json.getAsJsonArray("faults")).hasSize(1);
    assertThat(directory.resolve("wrong.xml"))
        .content()
        .contains("tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\"")
        .containsPattern("<error message=\"IMPOSSIBLE_RATE: .*\" type=\"IMPOSSIBLE_RATE\"");
    assertThat(braid("runs").out()).contains("  IMPOSSIBLE_RATE: pipelined, 2 splits");
    assertThat(braid("compare", fine, fine.substring(0, 20)).exitCode()).isEqualTo(2);
  }

  private static void notebook(Path file, String nanos) throws IOException {
    Files.writeString(
        file,
        Notebooks.json(
            new Code("int wait = 0;", "parameters"),
            new Code(
                "long nanos = %s;".formatted(nanos)
                    + " Tuner.on(world).steps(\"waiting\").step(\"short\", () ->"
                    + " java.util.concurrent.locks.LockSupport.parkNanos(1_000_000)).step(\"long\","
                    + " () -> java.util.concurrent.locks.LockSupport.parkNanos(nanos))"
                    + ".repeats(8).run()")));
  }

  private Ran waiting(String... more) throws IOException {
    var words = new ArrayList<>(List.of("run", "n.ipynb", "-n", "1", "--backend", "host"));
    words.addAll(List.of(more));
    return braid(words.toArray(String[]::new));
  }

  /// Returns the verdict. These times are of a clock, so a busy machine may make it undecided; the
  /// exit code is always the verdict's.
  private static String verdictWithItsCode(Ran ran) {
    var headline = HEADLINE.matcher(ran.out());
    assertThat(headline.find()).as(ran.out() + ran.err()).isTrue();
    assertThat(ran.exitCode())
        .isEqualTo(
            switch (headline.group(1)) {
              case "SLOW" -> 6;
              case "MACHINE_DIFFERED" -> 5;
              default -> 0;
            });
    return headline.group(1);
  }

  @Test
  void aRunIsJudgedAtItsEnd() throws Exception {
    notebook(directory.resolve("n.ipynb"), "2_000_000 + wait");
    assertThat(waiting("--baseline", "0a1b2c").exitCode()).isEqualTo(2);
    assertThat(waiting("--baseline", "last:0").exitCode()).isEqualTo(2);
    assertThat(experiments().list()).isEmpty();
    var first = waiting("--baseline", "last:5");
    assertThat(first.exitCode()).as(first.out() + first.err()).isZero();
    assertThat(first.out())
        .endsWith(
            "not judged: last:5 needs a completed run with a study before %s but there is none\n"
                .formatted(experiments().list().getFirst().manifest().id()));
    assertThat(waiting().exitCode()).isZero();
    var slower =
        waiting("--baseline", "last:5", "-p", "wait=4000000", "--threshold", "20", "--junit", "x");
    var verdict = verdictWithItsCode(slower);
    var ids = experiments().list().stream().map(run -> run.manifest().id()).toList();
    assertThat(ids).hasSize(3);
    assertThat(slower.out())
        .contains("first   %s, %s\n".formatted(ids.get(0), ids.get(1)))
        .contains("second  " + ids.get(2) + "\n");
    var folder = directory.resolve("runs").resolve(ids.get(2));
    assertThat(folder.resolve("comparison.csv")).content().contains("\"long\",");
    assertThat(folder.resolve("comparison.xml"))
        .content()
        .containsPattern("failures=\"%s\"".formatted(verdict.equals("SLOW") ? "[12]" : "0"));
    // Another run of the slow state, beside the run before.
    var same = waiting("--baseline", "latest", "-p", "wait=4000000", "--threshold", "50");
    verdictWithItsCode(same);
    assertThat(same.out()).contains("first   " + ids.get(2) + "\n");
    assertThat(waiting("--threshold", "5").err())
        .isEqualTo("braid: --threshold has no effect without --baseline; add it\n");
  }

  /// Both values of a variable in turns, each on fresh ranks.
  @Test
  void twoValuesOfAVariableAreCompared() throws Exception {
    notebook(
        directory.resolve("n.ipynb"), "Long.parseLong(System.getenv(\"OMP_WAIT\")) * 1_000_000");
    var ran = waiting("--ab", "OMP_WAIT=2,6", "--turns", "2");
    assertThat(ran.err())
        .containsSubsequence(
            "braid: A: OMP_WAIT=2\n",
            "braid: B: OMP_WAIT=6\n",
            "braid: turn 1 of 2, A\n",
            "braid: turn 1 of 2, B\n",
            "braid: turn 2 of 2, B\n",
            "braid: turn 2 of 2, A\n");
    verdictWithItsCode(ran);
    var all = experiments().list();
    assertThat(all.stream().map(run -> run.manifest().text("session.variables.OMP_WAIT")))
        .containsExactly(Optional.of("2"), Optional.of("6"), Optional.of("6"), Optional.of("2"));
    var ids = all.stream().map(run -> run.manifest().id()).toList();
    assertThat(ran.out())
        .contains("first   %s, %s\n".formatted(ids.get(0), ids.get(3)))
        .contains("second  %s, %s\n".formatted(ids.get(1), ids.get(2)))
        .containsPattern("session.variables.OMP_WAIT +2 +6")
        .containsPattern("\nlong +[A-Z_]+ ");
    // A repetition has the variable too.
    var again = braid("rerun", ids.get(1));
    assertThat(again.exitCode()).as(again.err()).isZero();
    assertThat(experiments().find("latest").manifest().text("session.variables.OMP_WAIT"))
        .contains("6");
  }

  /// Copies of a library whose versions are in the names of their files.
  @Test
  void copiesOfALibraryAreNamedWithTheirVersions() throws Exception {
    for (var version : List.of("2.28.9", "2.30.1")) {
      var folder = Files.createDirectories(directory.resolve("nccl-" + version));
      Files.createFile(folder.resolve("libnccl.so." + version));
      Files.createSymbolicLink(folder.resolve("libnccl.so.2"), Path.of("libnccl.so." + version));
    }
    notebook(
        directory.resolve("n.ipynb"),
        "System.getenv(\"BRAID_LIBRARIES\").contains(\"2.28\") ? 6_000_000 : 2_000_000");
    var ran = waiting("--ab", "nccl=nccl-2.28.9,nccl-2.30.1", "--turns", "1", "--fail-fast");
    verdictWithItsCode(ran);
    assertThat(ran.err())
        .contains("braid: A: NCCL, %s/nccl-2.28.9/libnccl.so.2 (2.28.9, in".formatted(directory))
        .contains("braid: B: NCCL, %s/nccl-2.30.1/libnccl.so.2 (2.30.1, in".formatted(directory));
    assertThat(ran.out()).contains("libraries.nccl").containsPattern("\nlong +[A-Z_]+ ");
    assertThat(experiments().find("latest").manifest().text("libraries.nccl").orElseThrow())
        .contains("2.30.1");

    assertThat(waiting("--ab", "nccl=nccl-2.28.9,.").err())
        .isEqualTo(
            "braid: NCCL must be in each folder of --ab but is not in %s; name the folder of its .so files\n"
                .formatted(directory));
    assertThat(waiting("--ab", "nccl=a").err())
        .startsWith("braid: --ab must be NAME=A,B with two different values but was nccl=a; ");
    assertThat(waiting("--ab", "BRAID_TOKEN=a,b").err())
        .startsWith("braid: --ab must name a library (cuda_runtime, ");
    assertThat(waiting("--ab", "OMP_WAIT=1,2", "--check", "-o", "x.ipynb").err())
        .isEqualTo(
            "braid: --ab compares runs of one notebook, each kept in the folder of its run, but has"
                + " --output, --check; leave it out\n");
    assertThat(waiting("--turns", "2").err())
        .isEqualTo("braid: --turns has no effect without --ab; add it\n");
  }
}
