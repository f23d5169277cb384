package braid.launcher.cli.experiment;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellOutput;
import braid.launcher.cli.home.Env;
import braid.launcher.experiment.Experiments;
import braid.launcher.experiment.Manifest.State;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SessionManifestTest {
  @TempDir Path home;

  @Test
  void aSessionsManifestBeginsWithItsFirstMeasurement() {
    var env = new Env(Map.of("BRAID_TIMEOUT_SECONDS", "77", "BRAID_TOKEN", "secret"));
    var options = new SessionOptions(1, BackendKind.HOST, Optional.empty(), home);
    var experiments = new Experiments(home.resolve("runs"));
    try (var session = Session.start(options)) {
      session.recordIn(SessionManifest.of(options, env));
      var before = run(session, "%%front\nprofiles.manifest()");
      assertThat(before).contains("there is no manifest yet");
      assertThat(home).isEmptyDirectory();
      run(
          session,
          "Tuner.on(world).gemm(GemmSpec.allGatherGemm(8, 8, 8)).splits(2).repeats(6).seed(5).run();");
      var found = experiments.list();
      assertThat(found).hasSize(1);
      assertThat(found.getFirst().manifest().state()).isEqualTo(State.RUNNING);
      assertThat(run(session, "%%front\nprofiles.manifest()"))
          .contains("run      " + found.getFirst().manifest().id(), "backend  host (set in code)");
    }
    var manifest = experiments.list().getFirst().manifest();
    assertThat(manifest.state()).isEqualTo(State.CLOSED);
    assertThat(manifest.data()).hasSize(1);
    assertThat(manifest.text("seeds.study " + manifest.data().getFirst())).contains("5");
    assertThat(manifest.text("environment.BRAID_TIMEOUT_SECONDS")).contains("77");
    assertThat(manifest.toJson()).doesNotContain("secret");
  }

  private static String run(Session session, String source) {
    var outcome = session.run(new Cell("cell", source), new CellOutput() {});
    return outcome
        .failure()
        .map(failure -> failure.message())
        .or(() -> outcome.result().map(bundle -> bundle.data().get("text/plain")))
        .orElse("");
  }
}
