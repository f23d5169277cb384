package braid.launcher.ranks;

import java.time.Duration;
import java.util.List;

/// Device kind of ranks, as it affects their start and end.
public enum RankKind {
  /// Ranks share the cores; the JVM's second compiler would compete with the GEMMs.
  HOST(false, Duration.ofMillis(700)),
  /// Host time per launch matters, so code is compiled fully. Destroying a context takes time, more
  /// so while streams wait.
  GPU(true, Duration.ofSeconds(4));

  private final boolean compiledFully;
  private final Duration exitTime;

  RankKind(boolean compiledFully, Duration exitTime) {
    this.compiledFully = compiledFully;
    this.exitTime = exitTime;
  }

  /// Additional JVM flags.
  List<String> flags() {
    // Enqueuing an iteration is a few dozen calls: without the scaling they are interpreted for the
    // first hundreds of iterations, which is all of many a measurement.
    return List.of(compiledFully ? "-XX:CompileThresholdScaling=0.1" : "-XX:TieredStopAtLevel=1");
  }

  /// Time for a rank to exit before it is killed.
  Duration exitTime() {
    return exitTime;
  }
}
