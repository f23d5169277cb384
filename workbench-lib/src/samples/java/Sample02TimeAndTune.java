// 02. Times, a profile, and a study that says which tuning is fastest.
//
//     ./braid exec workbench-lib/src/samples/java/Sample02TimeAndTune.java -n 2
//     ./braid runs latest        # the tables and charts that it has kept
//
// Prints, where … is any text:
//
//     | 5 iterations took … ms
//     | rank 0: … spans of 3 iterations
//     | … unfused…
//     | tried: unfused; pipelined, 1 split; pipelined, 2 splits; pipelined, 4 splits
//     | take …; …
import braid.*;
import braid.evidence.*;
import braid.model.*;

void main() {
  var world = ProcessGroup.world();
  var problem = GemmSpec.allGatherGemm(768, 512, 256);

  try (var pipe = Pipeline.on(world).gemm(problem).build()) {
    // Nanoseconds of each iteration on this rank. All ranks measure together.
    long[] nanos = pipe.time(5);
    // Records the begin and end of every copy and GEMM on this rank. The profile of all ranks is
    // kept under runs/, as tables and a timeline.
    var profile = pipe.profile(3);
    if (world.rank() == 0) {
      IO.println("5 iterations took %.2f ms".formatted(LongStream.of(nanos).sum() / 1e6));
      IO.println(
          "rank 0: %d spans of %d iterations"
              .formatted(profile.spans().size(), profile.iterations()));
    }
  }

  // The tuner verifies every configuration, then measures all of them in the same rounds. Every
  // rank gets the same study.
  Study<Overlap> study = Tuner.on(world).gemm(problem).splits(1, 2, 4).repeats(8).run();
  var tried = study.trials().stream().map(trial -> trial.configuration().toString());
  IO.println(study.headline());
  IO.println("tried: unfused; " + tried.collect(Collectors.joining("; ")));

  // best() is the fastest, or the simplest of those that are as good within the noise.
  // Eight rounds are few: a study that is not decided says how many more would decide it.
  var decided = study.isDecided() ? "decided" : study.advice().orElse("not decided");
  // Times of ranks that share a GPU do not count, so such a study has no best.
  var taken = study.timesCount() ? study.best() : study.reference();
  IO.println("take " + taken + "; " + decided);
}
