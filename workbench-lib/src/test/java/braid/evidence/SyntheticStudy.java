package braid.evidence;

import braid.internal.report.value.Caveats;
import braid.model.GemmSpec;
import braid.model.Overlap;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.ToDoubleFunction;

/// A study of a simulated machine: true times are given, the noise is drawn from a seed. Noise is
/// partly shared within a round and has a tail of slow outliers.
public record SyntheticStudy(double unfusedNanos, double noise, int repeats, long seed) {

  public Study<Overlap> of(List<Overlap> overlaps, ToDoubleFunction<Overlap> trueNanos) {
    var random = new Random(seed);
    var moods = new double[repeats];
    for (int round = 0; round < repeats; round++) {
      moods[round] = 1 + noise * random.nextGaussian();
    }
    var first = times(unfusedNanos, moods, random);
    var again = times(unfusedNanos, moods, random);
    var trials = new ArrayList<Study.Trial<Overlap>>();
    for (var overlap : overlaps) {
      trials.add(
          new Study.Trial<>(overlap, times(trueNanos.applyAsDouble(overlap), moods, random)));
    }
    var problem = GemmSpec.allGatherGemm(2048, 2048, 2048).columns();
    return new Study<>(problem, 4, seed, first, again, trials, Overlap.unfused());
  }

  private List<Long> times(double nanos, double[] moods, Random random) {
    var times = new ArrayList<Long>();
    for (var mood : moods) {
      double own = 1 + noise * random.nextGaussian() + (random.nextInt(20) == 0 ? 5 * noise : 0);
      times.add(Math.max(1, Math.round(nanos * mood * own)));
    }
    return times;
  }

  /// Returns a study of ranks that share a GPU, with a prediction of each time but the last.
  public static Study<Overlap> shared(Study<Overlap> study) {
    var problem = new LinkedHashMap<>(study.problem());
    problem.put("backend", "cuda");
    Caveats.put(4, problem);
    var predicted = new ArrayList<>(List.of(400_000L));
    for (int i = 1; i < study.trials().size(); i++) {
      predicted.add(300_000 + 1_000L * i);
    }
    predicted.add(0L);
    return new Study<>(
        problem,
        study.ranks(),
        study.seed(),
        study.unfusedFirst(),
        study.unfusedAgain(),
        study.trials(),
        study.unfusedReadings(),
        study.reference(),
        Optional.of(new Study.Prediction("h200x8, not calibrated", predicted)),
        0,
        List.of(),
        List.of(),
        Optional.empty());
  }

  /// Returns pipelined configurations of every combination.
  public static List<Overlap> overlaps(int[] splits, int... streams) {
    var overlaps = new ArrayList<Overlap>();
    for (int stream : streams) {
      for (int split : splits) {
        overlaps.add(Overlap.pipelined(split).streams(stream));
      }
    }
    return overlaps;
  }

  /// Returns a model of times: unfused `gemm` + `comm`; chunks hide all of `comm` except the first
  /// chunk, each chunk costs `launch`, and more than two streams slow each other down.
  public static ToDoubleFunction<Overlap> model(double gemm, double comm, double launch) {
    return tuning ->
        gemm
            + comm / tuning.splits()
            + launch * tuning.splits() / Math.min(2, tuning.streams())
            + 0.01 * gemm * Math.max(0, tuning.streams() - 2);
  }
}
