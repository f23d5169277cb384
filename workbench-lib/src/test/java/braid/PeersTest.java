package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import braid.evidence.SpeedLimits;
import braid.evidence.Study;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GroupAborted;
import braid.model.Link;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Runs scripts of plain Python beside host ranks.
@Timeout(180)
class PeersTest {
  private static final GemmSpec SMALL = GemmSpec.allGatherGemm(24, 16, 8).dtype(DType.FP32);

  @TempDir Path directory;

  @BeforeAll
  static void needsPython() throws InterruptedException {
    boolean found;
    try {
      found = new ProcessBuilder("python3", "-c", "").start().waitFor() == 0;
    } catch (IOException e) {
      found = false;
    }
    assumeThat(found || System.getenv("CI") != null).as("python3 is needed").isTrue();
  }

  private String script(String text) throws IOException {
    return Files.writeString(directory.resolve("other.py"), text).toString();
  }

  @Test
  void stepsOfPeersAreMeasuredInTheRoundsOfTheTunings() throws IOException {
    // Every process counts its calls, and waits until all processes have made the same call.
    var script =
        script(
            """
            import os, sys, time
            rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            calls = 0
            def meet():
                global calls
                calls += 1
                open(f"{sys.argv[1]}/{rank}.{calls}", "w").close()
                while not all(os.path.exists(f"{sys.argv[1]}/{r}.{calls}") for r in range(size)):
                    time.sleep(0.001)
            def slow():
                meet()
                time.sleep(0.02)
            steps = {"meet": meet, "slow": slow}
            print("not a reply")
            """);
    var calls = Files.createDirectory(directory.resolve("calls"));
    LocalRanks.run(
        3,
        world -> {
          try (var peers = Peers.torch(world, script, calls.toString())) {
            assertThat(peers.steps()).containsExactly("meet", "slow");
            assertThat(peers).asString().startsWith("other.py: Python 3.");
            var study =
                Tuner.on(world).gemm(SMALL).splits(1, 2).repeats(8).warmup(2).peers(peers).run();
            assertThat(study.trials())
                .extracting(trial -> trial.configuration().toString())
                .endsWith("other: meet", "other: slow")
                .hasSize(4);
            assertThat(study.trials().getLast().nanos())
                .hasSize(8)
                .allMatch(nanos -> nanos >= Duration.ofMillis(20).toNanos());
            assertThat(study.problem()).containsEntry("peers", peers.toString());
            assertThat(Study.fromJson(study.toJson())).isEqualTo(study);
            assertThat(study.table().stringColumn("step").asList())
                .endsWith("other: meet", "other: slow");
            assertThat(study.headline()).isNotBlank();
            assertThat(study.chart()).isNotNull();
          }
        });
    try (var files = Files.list(calls)) {
      // Three processes, two steps, eight rounds, and one measured call behind two of warm-up.
      assertThat(files).hasSize(3 * 2 * 8 * 3);
    }
  }

  @Test
  void peersAreStepsBesideSteps() throws IOException {
    var script = script("steps = {'one': lambda: None}");
    LocalRanks.run(
        2,
        world -> {
          try (var peers = Peers.torch(world, script)) {
            var study =
                Tuner.on(world)
                    .steps("nothing")
                    .step("code", () -> {})
                    .peers(peers)
                    .repeats(6)
                    .run();
            assertThat(study.cast(Configuration.Named.class).reference().name()).isEqualTo("code");
            assertThat(study.trials().getFirst().configuration())
                .isEqualTo(new Configuration.Named("other: one"));
          }
        });
  }

  @Test
  void theSimulatedLinkIsNoLimitOfPeers() throws IOException {
    var script = script("steps = {'one': lambda: None}");
    LocalRanks.run(
        2,
        Link.parse("1MB/s,1us"),
        world -> {
          var study =
              Tuner.on(world)
                  .gemm(SMALL)
                  .splits(1)
                  .peers(Peers.torch(world, script))
                  .repeats(6)
                  .run();
          var limits = SpeedLimits.of(study.problem(), 2);
          assertThat(limits.fault("", study.trials().getLast().medianNanos()))
              .hasValueSatisfying(fault -> assertThat(fault).startsWith("IMPOSSIBLE_BANDWIDTH"));
          assertThat(study.faults()).isEmpty();
        });
  }

  @Test
  void aFailureIsToldWithItsRankAndReleasesTheOthers() throws IOException {
    var script =
        script(
            """
            import os, time
            def step():
                if os.environ["RANK"] == "1":
                    raise ValueError("no such shape")
                time.sleep(1000)
            steps = {"step": step}
            """);
    var released = new ConcurrentLinkedQueue<Throwable>();
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      var peers = Peers.torch(world, script);
                      var tuner = Tuner.on(world).steps("s").step("code", () -> {}).peers(peers);
                      try {
                        tuner.repeats(6).run();
                      } catch (GroupAborted e) {
                        released.add(e);
                        throw e;
                      } finally {
                        assertThatThrownBy(
                                () -> peers.time("step", 1, world.context().backend().timing()))
                            .hasMessage(
                                "the peers of `other.py` have ended; start them again: Peers.torch(...)");
                      }
                    }))
        .isInstanceOf(BraidException.class)
        .hasMessage("step `step` of `other.py` of rank 1 failed: ValueError: no such shape");
    assertThat(released).hasSize(1);
  }

  @Test
  void aScriptThatCannotServeIsRefused() throws IOException {
    var script = script("import no_such_module");
    assertThatThrownBy(() -> LocalRanks.run(1, world -> Peers.torch(world, script)))
        .hasMessageMatching(
            "the steps of `other.py` of rank 0 failed: ModuleNotFoundError: No module named 'no_such_module'; this is /.*python.*, BRAID_PYTHON names another");
    refused(
        "steps = []",
        "the steps of `other.py` of rank 0 failed: ValueError: `steps` must be a dict of names and functions, such as steps = {\"fused\": fused}");
    refused(
        "steps = {'a\\nb': print}",
        "the steps of `other.py` of rank 0 failed: ValueError: `steps` must have names of one line and functions but has 'a\\nb': <built-in function print>");
    refused(
        "import sys; sys.exit()",
        "the steps of `other.py` of rank 0 failed: RuntimeError: the script ended by itself");
    refused(
        "import os; print('gone', flush=True); os._exit(7)",
        "the steps of `other.py` of rank 0 ended: exit code 7, gone");
    assertThatThrownBy(() -> LocalRanks.run(1, world -> Peers.torch(world, "none.py")))
        .hasMessageStartingWith(
            "the script of peers must be a file but `none.py` is none; give its path from /");
    var right = script("steps = {'one': print}");
    assertThatThrownBy(
            () -> LocalRanks.run(1, world -> Tuner.on(world).peers(Peers.torch(world, right))))
        .hasMessage(
            "peers need a problem but none is set; call gemm(spec), attention(spec) or steps(name) before");
  }

  private void refused(String script, String message) throws IOException {
    var path = script(script);
    assertThatThrownBy(() -> LocalRanks.run(1, world -> Peers.torch(world, path)))
        .isInstanceOf(BraidException.class)
        .hasMessage(message);
  }

  @Test
  void processesEndWithTheirRanksAndGetNoSecrets() throws Exception {
    var script =
        script(
            """
            import os, sys
            steps = {"one": print}
            with open(f"{sys.argv[1]}/{os.environ['RANK']}", "w") as file:
                secrets = [name for name in os.environ if name.startswith("BRAID_")]
                print(os.getpid(), os.environ["MASTER_ADDR"], secrets, file=file)
            """);
    LocalRanks.run(2, world -> Peers.torch(world, script, directory.toString()));
    for (var rank : new String[] {"0", "1"}) {
      var words = Files.readString(directory.resolve(rank)).strip().split(" ", -1);
      assertThat(words).endsWith("127.0.0.1", "[]");
      var process = ProcessHandle.of(Long.parseLong(words[0]));
      if (process.isPresent()) {
        process.get().onExit().get(60, TimeUnit.SECONDS);
      }
    }
  }
}
