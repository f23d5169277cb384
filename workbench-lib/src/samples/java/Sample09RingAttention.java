// 09. A ring attention: keys and values travel from neighbor to neighbor while blocks are attended.
//
//     ./braid exec workbench-lib/src/samples/java/Sample09RingAttention.java -n 3
//
// Prints, where … is any text:
//
//     | causal contiguous, 3 ranks: nothing found in 3 ranks × 2 iterations
//     | causal zigzag, 4 ranks: nothing found in 4 ranks × 2 iterations
//     | contiguous, eager: verified 34,000 values of 3 ranks: …
//     | causal zigzag, replayed: verified 34,000 values of 3 ranks: …
//     | comm  > fetch 2 @2 > fetch 1 @2 >
//     | saved and read: true
//     | predicted on 8 GPUs: …
//     | my ring …
import braid.*;
import braid.model.*;
import braid.schedule.*;
import braid.schedule.simulation.Machine;

void main() {
  var world = ProcessGroup.world();
  var plain = AttentionSpec.of(250, 8, 16).kvHeads(2); // 4 query heads share one of key and value
  var problems = new LinkedHashMap<String, AttentionSpec>();
  problems.put("contiguous", plain);
  problems.put("causal contiguous", plain.causal());
  problems.put("causal zigzag", plain.causal().layout(TokenLayout.ZIGZAG));

  problems.forEach(
      (name, problem) -> {
        for (int ranks = 2; ranks <= 5; ranks++) {
          IO.println(name + ", " + ranks + " ranks: " + ring(problem, ranks).findings());
        }
        var own = ring(problem, world.size());
        try (var eager = Pipeline.on(world).schedule(own).build();
            var replayed = Pipeline.on(world).schedule(own.replay()).build()) {
          IO.println(name + ", eager: " + eager.verify());
          IO.println(name + ", replayed: " + replayed.verify());
        }
      });

  var problem = plain.causal().layout(TokenLayout.ZIGZAG);
  var own = ring(problem, world.size()).named("my ring");
  IO.println(own.timeline(0));
  IO.println("saved and read: " + Schedule.fromJson(own.toJson()).equals(own));
  var large = AttentionSpec.of(65536, 32, 128).kvHeads(8).causal().dtype(DType.BF16);
  IO.println("predicted on 8 GPUs: " + ring(large, 8).simulate(Machine.h200x8()).summary());
  var study =
      Tuner.on(world)
          .attention(problem)
          .overlaps(ContextParallel.ring(), ContextParallel.allGatherKv())
          .schedule(own)
          .schedule(own.replay().named("replayed"))
          .repeats(8)
          .run();
  Display.display(study);
}

/// In hop h, each rank fetches from its predecessor the keys and values of the rank h places before
/// it, and attends to them while it fetches the next ones. Two slots take turns: the successor
/// fetches from one while the other one is filled.
Schedule ring(AttentionSpec problem, int ranks) {
  var plan = Schedule.on(problem, ranks);
  var query = plan.local(Part.QUERY);
  var key = plan.symmetric(Part.KEY);
  var value = plan.symmetric(Part.VALUE);
  var output = plan.local(Part.OUTPUT);
  var lse = plan.local(Part.LSE);
  long slot = IntStream.range(0, ranks).mapToLong(key::rows).max().orElseThrow();
  var keys = plan.symmetric("keys", key.dtype(), 2 * slot, key.columns(0));
  var values = plan.symmetric("values", key.dtype(), 2 * slot, key.columns(0));
  var comm = plan.lane("comm", Lane.Role.COMMUNICATION);
  var math = plan.lane("math", Lane.Role.COMPUTE);

  return plan.ordered(
      p -> {
        int me = p.rank();
        int previous = (me + ranks - 1) % ranks;
        for (int hop = 0; hop < ranks; hop++) {
          int owner = (me + ranks - hop) % ranks;
          long rows = key.rows(owner);
          var place = new Slice(hop % 2 * slot, rows);
          if (hop > 0) {
            var from = new Slice((hop - 1) % 2 * slot, rows); // where the predecessor has them
            p.round(hop); // each hop overwrites the rows of two hops before
            p.copy(
                comm,
                owner,
                List.of(
                    new Step.Move(
                        hop == 1 ? key.on(previous) : keys.on(previous, from), keys.on(me, place)),
                    new Step.Move(
                        hop == 1 ? value.on(previous) : values.on(previous, from),
                        values.on(me, place))));
          }
          var theirKeys = hop == 0 ? key.on(me) : keys.on(me, place);
          var theirValues = hop == 0 ? value.on(me) : values.on(me, place);
          // In the zigzag layout a rank has two runs of consecutive positions. The first block of a
          // query begins its result; others are added in place, or left out if the mask hides them.
          for (var queries : Tokens.of(problem, ranks, me).runs()) {
            var sum =
                new Step.Partial(
                    output.on(me, Slice.rows(queries)), lse.on(me, Slice.rows(queries)));
            boolean continued = hop > 0;
            for (var run : Tokens.of(problem, ranks, owner).runs()) {
              p.attend(
                  math,
                  owner,
                  problem,
                  query.on(me, Slice.rows(queries)),
                  queries.first(),
                  theirKeys.tokens(run),
                  theirValues.tokens(run),
                  run.first(),
                  sum,
                  continued);
              continued = true;
            }
          }
        }
      });
}
