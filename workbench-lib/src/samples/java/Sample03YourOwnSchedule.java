// 03. A schedule of your own: written, checked, broken on purpose, and run.
//
//     ./braid exec workbench-lib/src/samples/java/Sample03YourOwnSchedule.java -n 2
//
// Prints, where … is any text:
//
//     | findings: nothing found in 2 ranks × 2 iterations
//     | without a wait: rank 0, lane copies, step 0 (signal begun[0] to rank 1) …
//     | refused: …
//     | fetch by fetch: verified 393,216 values of 2 ranks: each equals the reference exactly
import braid.*;
import braid.model.*;
import braid.schedule.*;

void main() {
  var world = ProcessGroup.world();
  int ranks = world.size();
  var problem = GemmSpec.allGatherGemm(768, 512, 256);

  // Every rank has these buffers and lanes. Steps of a lane run in order; lanes run side by side.
  // Other ranks reach symmetric buffers.
  var plan = Schedule.on(problem, ranks);
  var input = plan.symmetric(Part.INPUT);
  var weight = plan.local(Part.WEIGHT);
  var output = plan.local(Part.OUTPUT);
  var gathered = plan.local("gathered", problem.dtype(), problem.m(), problem.k());
  var copies = plan.lane("copies", Lane.Role.COMMUNICATION);
  var math = plan.lane("math", Lane.Role.COMPUTE);

  // The steps of each rank: fetch the rows of one rank after another, and multiply each while the
  // next ones travel. Signals and waits follow from the rows that the steps read and write.
  IntFunction<Slice> rows = rank -> new Slice(0, problem.m()).part(ranks, rank);
  var own =
      plan.ordered(
              p -> {
                int me = p.rank();
                p.prepare(math, weight.on(me));
                p.gemm(math, me, input.on(me), weight.on(me), output.on(me, rows.apply(me)));
                for (int i = 1; i < ranks; i++) {
                  int peer = (me + i) % ranks;
                  var fetched = gathered.on(me, rows.apply(peer));
                  p.copy(copies, peer, input.on(peer), fetched);
                  p.gemm(math, peer, fetched, weight.on(me), output.on(me, rows.apply(peer)));
                }
              })
          .named("fetch by fetch");

  // The check finds missing waits, deadlocks, races and wrong data flow on all ranks, without
  // running anything.
  IO.println("findings: " + own.findings());

  // The same schedule without rank 1's waits for inputs.
  var broken =
      own.without(1, step -> step instanceof Step.Wait wait && wait.flag().name().equals("begun"));
  IO.println("without a wait: " + broken.findings().getFirst());
  try {
    Pipeline.on(world).schedule(broken).build();
    throw new AssertionError("a broken schedule was built");
  } catch (BraidException e) {
    IO.println("refused: " + e.getMessage().lines().findFirst().orElseThrow());
  }

  try (var pipe = Pipeline.on(world).schedule(own).build()) {
    IO.println("fetch by fetch: " + pipe.verify());
  }
}
