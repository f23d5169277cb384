// 08. An all-gather and a GEMM over two levels of links: fast within a group, slow between groups.
//
//     ./braid exec workbench-lib/src/samples/java/Sample08TwoLevelGather.java -n 4
//
// Prints, where … is any text:
//
//     | nothing found in 4 ranks × 2 iterations
//     | fast  | fetch 1 @1 | fetch 3 @1 >
//     | 2 × 3, 3 × 2 and 4 × 2 ranks: nothing found
//     | eager: verified 394,240 values of 4 ranks: each equals the reference exactly
//     | replayed: verified 394,240 values of 4 ranks: each equals the reference exactly
//     | saved and read: true
//     | predicted on pairs of GPUs: two levels …, direct …
//     | two levels …
import braid.*;
import braid.model.*;
import braid.schedule.*;
import braid.schedule.simulation.Machine;

void main() {
  var world = ProcessGroup.world();
  int ranks = world.size();
  int size = ranks % 2 == 0 ? 2 : 1;
  var problem = GemmSpec.allGatherGemm(770, 512, 256);

  var own = twoLevels(problem, ranks, size).named("two levels");
  own.check();
  IO.println(own.findings());
  IO.println(own.timeline(0));
  twoLevels(problem, 6, 3).check();
  twoLevels(problem, 6, 2).check();
  twoLevels(problem, 8, 2).check();
  IO.println("2 × 3, 3 × 2 and 4 × 2 ranks: nothing found");

  try (var pipe = Pipeline.on(world).schedule(own).build()) {
    IO.println("eager: " + pipe.verify());
  }
  var replayed = own.replay().named("replayed");
  try (var pipe = Pipeline.on(world).schedule(replayed).build()) {
    IO.println("replayed: " + pipe.verify());
  }
  IO.println("saved and read: " + Schedule.fromJson(own.toJson()).equals(own));

  // Ranks of this machine have one kind of link. A described machine has two: the second and later
  // ranks of a group are worth it where the links between groups are slow.
  var large = GemmSpec.allGatherGemm(8192, 8192, 8192).dtype(DType.BF16);
  var pairs = Machine.named("h200x8x4hosts").withRanksPerHost(2);
  IO.println(
      "predicted on pairs of GPUs: two levels %s, direct %s"
          .formatted(
              twoLevels(large, ranks, size).simulate(pairs).summary(),
              Schedule.of(large, Overlap.direct(), ranks).simulate(pairs).summary()));

  var study =
      Tuner.on(world)
          .gemm(problem)
          .overlaps(Overlap.direct(), Overlap.ring(1))
          .schedule(own)
          .schedule(replayed)
          .repeats(8)
          .run();
  Display.display(study);
}

/// Ranks in groups of consecutive ranks. Each rank fetches across the slow links from the ranks at
/// its own place in the other groups only, and the rest from its own group.
Schedule twoLevels(GemmSpec problem, int ranks, int size) {
  int groups = ranks / size;
  var plan = Schedule.on(problem, ranks);
  var input = plan.symmetric(Part.INPUT);
  var weight = plan.local(Part.WEIGHT);
  var output = plan.local(Part.OUTPUT);
  var gathered = plan.symmetric("gathered", problem.dtype(), problem.m(), problem.k());
  var slow = plan.lane("slow", Lane.Role.COMMUNICATION);
  var fast = plan.lane("fast", Lane.Role.COMMUNICATION);
  var math = plan.lane("math", Lane.Role.COMPUTE);
  IntFunction<Slice> rows = owner -> Slice.of(problem.m(), ranks, owner);

  return plan.ordered(
      p -> {
        int me = p.rank();
        int group = me / size;
        int place = me % size;
        p.prepare(math, weight.on(me));
        for (int i = 0; i < groups; i++) {
          int from = (group + i) % groups; // the own group first
          int across = from * size + place;
          if (i > 0) {
            p.copy(slow, across, input.on(across), gathered.on(me, rows.apply(across)));
          }
          for (int j = 0; j < size; j++) {
            int neighbor = (place + j) % size;
            int owner = from * size + neighbor;
            var fetched = gathered.on(me, rows.apply(owner));
            if (j > 0) { // what the neighbor has fetched, or its own rows
              int near = group * size + neighbor;
              p.copy(
                  fast,
                  owner,
                  i == 0 ? input.on(near) : gathered.on(near, rows.apply(owner)),
                  fetched);
            }
            p.gemm(
                math,
                owner,
                owner == me ? input.on(me) : fetched,
                weight.on(me),
                output.on(me, rows.apply(owner)));
          }
        }
      });
}
