// 03. A schedule of your own: written, checked, broken on purpose, and run.
//
//     ./braid exec workbench-lib/src/samples/java/Sample03YourOwnSchedule.java -n 2
//
// Prints, where … is any text:
//
//     | findings: nothing found in 2 ranks × 2 iterations
//     | without a wait: signal begun[0] to rank 1 …
//     | refused: …
//     | fetch by fetch: verified 393,216 values of 2 ranks: each equals the reference exactly
import braid.*;
import braid.model.*;
import braid.schedule.*;

void main() {
  var world = ProcessGroup.world();
  int ranks = world.size();
  var problem = GemmSpec.allGatherGemm(768, 512, 256);

  // Every rank has these buffers, flags and lanes. Steps of a lane run in order; lanes run side by
  // side. Other ranks reach symmetric buffers.
  var plan = Schedule.on(problem, ranks);
  var input = plan.symmetric(Part.INPUT);
  var weight = plan.local(Part.WEIGHT);
  var output = plan.local(Part.OUTPUT);
  var gathered = plan.local("gathered", problem.dtype(), problem.m(), problem.k());
  var begun = plan.flag("begun", ranks); // my input is written: you may read it
  var read = plan.flag("read", ranks); // I no longer read your input
  var copies = plan.lane("copies", Lane.Role.COMMUNICATION);
  var math = plan.lane("math", Lane.Role.COMPUTE);

  // The steps of each rank: fetch the rows of one rank after another, and multiply each while the
  // next ones travel.
  IntFunction<Slice> rows = rank -> new Slice(0, problem.m()).part(ranks, rank);
  var own =
      plan.steps(
              p -> {
                int me = p.rank();
                int[] peers = IntStream.range(0, ranks).filter(rank -> rank != me).toArray();
                for (int peer : peers) {
                  p.signal(copies, begun, peer);
                }
                p.prepare(math, weight.on(me));
                p.gemm(math, me, input.on(me), weight.on(me), output.on(me, rows.apply(me)));
                for (int peer : peers) {
                  var fetched = gathered.on(me, rows.apply(peer));
                  p.await(copies, begun, peer); // matches the peer's signal of begun
                  p.copy(copies, peer, input.on(peer), fetched);
                  p.after(math, peer, copies);
                  p.gemm(math, peer, fetched, weight.on(me), output.on(me, rows.apply(peer)));
                }
                for (int peer : peers) {
                  p.signal(copies, read, peer).await(copies, read, peer);
                }
              })
          .named("fetch by fetch");

  // The check finds missing waits, deadlocks, races and wrong data flow on all ranks, without
  // running anything.
  IO.println("findings: " + own.findings());

  // The same schedule without rank 1's waits for inputs.
  var broken = own.without(1, step -> step instanceof Step.Wait wait && wait.flag().equals(begun));
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
