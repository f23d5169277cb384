package braid.launcher.ranks;

import java.time.Duration;
import java.util.List;

/// What ranks work on, as far as it matters to how they are started and ended.
public enum RankKind {
  /// Ranks share the cores, which the JVM's second compiler would only take from the GEMMs.
  HOST(false, Duration.ofMillis(700)),
  /// What a launch costs the host counts, so it is compiled fully. A context takes its time to be
  /// taken down, more so where streams still wait.
  GPU(true, Duration.ofSeconds(4));

  private final boolean compiledFully;
  private final Duration leave;

  RankKind(boolean compiledFully, Duration leave) {
    this.compiledFully = compiledFully;
    this.leave = leave;
  }

  /// What the JVM is given besides what every rank's is.
  List<String> flags() {
    // Enqueuing an iteration is a few dozen calls: without the scaling they are interpreted for the
    // first hundreds of iterations, which is all that many a measurement has.
    return List.of(compiledFully ? "-XX:CompileThresholdScaling=0.05" : "-XX:TieredStopAtLevel=1");
  }

  /// How long a rank that is told to leave may take before it is killed.
  Duration leave() {
    return leave;
  }
}
