package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Open MPI starts four ranks on two hosts. The command and mpirun are on a third, the test's own.
/// A script enters a host as ssh would: with nothing of mpirun's environment.
class MpiTest extends RunOnTwoHosts {
  private static final String MPIRUN = "mpirun";

  /// A token or a hash of a certificate.
  private static final Pattern KEY = Pattern.compile("[0-9a-f]{64}");

  /// Leaves the processors to the ranks between two looks.
  private static final long POLL_NANOS = 10_000_000;

  private final List<Process> fronts = new ArrayList<>();

  @BeforeAll
  static void assume() {
    assume("Open MPI", "mpirun", "orted");
  }

  @BeforeEach
  void writeAgent() throws Exception {
    var lines = new ArrayList<>(List.of("host=$1", "shift"));
    for (int host = 1; host <= 2; host++) {
      var command = hosts.command(host, folder, List.of("sh", "-c"));
      lines.add(
          "[ $host != %s ] || exec env -i PATH=\"$PATH\" HOME=\"$HOME\" %s \"$*\""
              .formatted(NamespaceHosts.name(host), quoted(command)));
    }
    script("agent.sh", lines.toArray(String[]::new));
  }

  @AfterEach
  void endFronts() {
    fronts.forEach(Process::destroyForcibly);
    fronts.clear();
  }

  private Process run(String... notebooks) throws Exception {
    var command = new ArrayList<>(List.of("./braid", "run", "--log-output"));
    command.addAll(List.of(notebooks));
    command.addAll(List.of("-n", "4", "--launcher", "mpi", "--listen", hosts.frontAddress()));
    command.add(
        "--launcher-options=--allow-run-as-root --host h1:2,h2:2 --mca plm_rsh_agent %s --mca oob_tcp_if_include %s"
            .formatted(folder.resolve("agent.sh"), hosts.network()));
    return start(command);
  }

  private Process start(List<String> command) throws Exception {
    var front =
        new ProcessBuilder(command)
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("output").toFile())
            .start();
    fronts.add(front);
    return front;
  }

  private int exitCode(Process front) throws Exception {
    assertThat(front.waitFor(100, TimeUnit.SECONDS)).as(output()).isTrue();
    return front.exitValue();
  }

  /// Polls the argument lists of all hosts until the command ends.
  private void assertNoKeyUntilTheEnd(Process front) throws Exception {
    var seen = new HashSet<String>();
    while (front.isAlive()) {
      seen.addAll(hosts.processes(1).values());
      seen.addAll(hosts.processes(2).values());
      front.descendants().map(NamespaceHosts::commandLine).forEach(seen::add);
      LockSupport.parkNanos(POLL_NANOS);
    }
    for (var program : List.of(MPIRUN, "orted", AGENT, RANK)) {
      assertThat(seen).as(program).anyMatch(line -> line.contains(program));
    }
    assertThat(seen).noneMatch(line -> KEY.matcher(line).find());
  }

  @Test
  void aRunAndItsRepetitionShowNoKey() throws Exception {
    notebook(HOSTS, VERIFIED);
    var first = run("n.ipynb");
    assertNoKeyUntilTheEnd(first);
    assertThat(exitCode(first)).as(output()).isZero();
    assertThat(output()).contains("[h1 [0, 1], h2 [2, 3]]", "verified");
    assertNothingLeft(1, 2);
    var repetition = start(List.of("./braid", "rerun", "latest"));
    assertNoKeyUntilTheEnd(repetition);
    assertThat(exitCode(repetition)).as(output()).isZero();
    assertThat(runs().list()).hasSize(2);
    assertThat(saved()).contains("[h1 [0, 1], h2 [2, 3]]", "verified");
    assertNothingLeft(1, 2);
  }

  @Test
  void aKilledMpirunIsNamed() throws Exception {
    notebook(STUCK);
    var front = run("n.ipynb");
    awaitStuck();
    front
        .descendants()
        .filter(each -> NamespaceHosts.commandLine(each).startsWith(MPIRUN))
        .forEach(ProcessHandle::destroyForcibly);
    assertNamed("lost: its agent has ended");
    assertThat(exitCode(front)).isEqualTo(138);
    assertNothingLeft(1, 2);
  }

  @Test
  void aKilledRankAndAKilledHostAreNamed() throws Exception {
    notebook(STUCK);
    notebook("second", STUCK);
    var front = run("n.ipynb", "second.ipynb");
    killRankOfFirstNotebook();
    hosts.kill(2);
    assertNamed("lost: host h2 has not answered for 7 s");
    assertThat(exitCode(front)).isEqualTo(138);
    assertSavedWithKilledRankAndLostHost();
    assertNothingLeft(1);
  }
}
