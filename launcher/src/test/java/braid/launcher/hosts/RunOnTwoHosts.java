package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.launcher.FrontJvm;
import braid.launcher.experiment.Experiments;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import braid.natives.ucx.UcxWorker;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.api.parallel.ResourceLock;

/// `braid run` with four ranks on two hosts, `h1` and `h2`, that another program starts. The tests
/// of a class use the hosts one after the other. After a test that fails or damages a host, the
/// next test gets new ones.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Execution(ExecutionMode.CONCURRENT)
@ResourceLock(NamespaceHosts.CORES)
abstract class RunOnTwoHosts {
  static final Code HOSTS = new Code("world.hosts()");

  static final Code VERIFIED =
      new Code(
          "Pipeline.on(world).gemm(GemmSpec.allGatherGemm(96, 24, 16)).overlap(Overlap.pipelined(2)).build().verify()");

  static final Code PROFILED =
      new Code(
          "Pipeline.on(world).gemm(GemmSpec.allGatherGemm(96, 24, 16)).overlap(Overlap.ring()).build().profile(3)");

  static final Code STUCK =
      new Code(
          "System.out.println(\"begun\"); if (world.rank() == 3) Thread.sleep(Long.MAX_VALUE); else world.barrier();");

  /// Command line of a rank's process, and of its agent.
  static final String RANK = "braid.launcher.rank.RankMain";

  static final String AGENT = "braid.launcher.cli.Braid rank";

  private static final Duration PATIENCE = Duration.ofSeconds(100);
  private static final long POLL_NANOS = 20_000_000;

  @TempDir Path folder;
  NamespaceHosts hosts;
  private @Nullable NamespaceHosts shared;
  private final Map<Integer, Map<Long, String>> daemons = new TreeMap<>();

  @RegisterExtension
  final AfterEachCallback renewal =
      context -> {
        if (context.getExecutionException().isPresent() || hosts.damaged()) {
          end();
        }
      };

  interface Condition {
    boolean holds() throws IOException, InterruptedException;
  }

  /// Skips the test, by name, without these programs or UCX.
  static void assume(String engine, String... programs) {
    var missing =
        Stream.of(programs)
            .filter(
                program ->
                    Stream.of("/usr/bin", "/usr/sbin", "/bin", "/sbin")
                        .noneMatch(bin -> Files.isExecutable(Path.of(bin, program))))
            .toList();
    assumeTrue(missing.isEmpty(), engine + " is not installed: " + missing);
    assumeTrue(UcxWorker.missing().isEmpty(), () -> "UCX is missing: " + UcxWorker.missing());
  }

  @BeforeEach
  void start() throws Exception {
    var current = shared;
    if (current == null) {
      current = new NamespaceHosts(2);
      shared = current;
      boot(current);
      for (int host = 1; host <= 2; host++) {
        daemons.put(host, current.processes(host));
      }
    }
    hosts = current;
    script(
        "braid",
        "exec %s '-Dbraid.home=%s' braid.launcher.cli.Braid \"$@\""
            .formatted(quoted(FrontJvm.command()), folder));
  }

  /// Starts what runs on new hosts without a job.
  void boot(NamespaceHosts booted) throws Exception {}

  @AfterAll
  void end() throws InterruptedException {
    if (shared != null) {
      shared.close();
      shared = null;
    }
  }

  /// Returns words as bash reads them.
  static String quoted(List<String> words) {
    return words.stream()
        .map(each -> "'" + each.replace("'", "'\\''") + "'")
        .collect(Collectors.joining(" "));
  }

  Path script(String name, String... lines) throws IOException {
    var file =
        Files.writeString(folder.resolve(name), "#!/bin/bash\n" + String.join("\n", lines) + "\n");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"));
    return file;
  }

  void notebook(Code... cells) throws IOException {
    notebook("n", cells);
  }

  void notebook(String name, Code... cells) throws IOException {
    Files.writeString(folder.resolve(name + ".ipynb"), Notebooks.json(cells));
  }

  String output() throws IOException {
    var file = folder.resolve("output");
    return Files.exists(file) ? Files.readString(file) : "";
  }

  private static boolean waited(Duration longest, Condition condition) throws Exception {
    long end = System.nanoTime() + longest.toNanos();
    while (!condition.holds()) {
      if (System.nanoTime() > end) {
        return false;
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
    return true;
  }

  /// Waits until the stuck cell runs.
  void awaitStuck() throws Exception {
    awaitStuck(1);
  }

  private void awaitStuck(long count) throws Exception {
    assertThat(waited(PATIENCE, () -> output().lines().filter("begun"::equals).count() >= count))
        .as(output())
        .isTrue();
  }

  /// Kills a rank of h2 while the first of two stuck notebooks runs, and waits for the second one.
  /// It gets new ranks of the same agents, and nothing of the earlier ranks is left.
  void killRankOfFirstNotebook() throws Exception {
    awaitStuck();
    var earlier = hosts.processes(2);
    earlier.values().removeIf(line -> !line.contains(RANK));
    var memory = hosts.sharedMemory(2);
    hosts.process(2, RANK).orElseThrow().destroyForcibly();
    awaitStuck(2);
    assertThat(output()).containsPattern("rank [23] on h2 \\(pid \\d+\\) was killed by SIGKILL");
    assertThat(earlier).hasSize(2);
    assertThat(hosts.processes(2)).doesNotContainKeys(earlier.keySet().toArray(Long[]::new));
    assertThat(hosts.sharedMemory(2)).filteredOn(memory::contains).isEmpty();
  }

  /// Both notebooks are saved, each with its own failure.
  void assertSavedWithKilledRankAndLostHost() {
    var saved = runs().list().stream().map(RunOnTwoHosts::saved).toList();
    assertThat(saved).hasSize(2);
    assertThat(saved.getFirst()).contains("on h2 (pid", "SIGKILL");
    assertThat(saved.getLast()).contains("host h2 has not answered");
  }

  /// Waits for the name of a failure that is made now, or for one of several that are true.
  void assertNamed(String... names) throws Exception {
    assertThat(waited(PATIENCE, () -> Arrays.stream(names).anyMatch(output()::contains)))
        .as("%s: %s", List.of(names), output())
        .isTrue();
  }

  /// Accepts daemons only. One of them may have ended: a host's own start may be among them.
  void assertNothingLeft(int... alive) throws Exception {
    for (int host : alive) {
      var expected = daemons.getOrDefault(host, Map.of()).keySet();
      assertThat(waited(PATIENCE, () -> expected.containsAll(hosts.processes(host).keySet())))
          .as(() -> processes(host))
          .isTrue();
      assertThat(hosts.sharedMemory(host)).isEmpty();
    }
  }

  private String processes(int host) {
    try {
      return hosts.processes(host).toString();
    } catch (IOException e) {
      return e.toString();
    }
  }

  Experiments runs() {
    return new Experiments(folder.resolve("runs"));
  }

  /// Returns the saved notebook of the latest run.
  String saved() {
    return saved(runs().find(Experiments.LATEST));
  }

  static String saved(Experiments.Found run) {
    var name = run.manifest().notebook().replace(".ipynb", ".out.ipynb");
    return Notebook.read(run.directory().resolve(name)).toJson();
  }
}
