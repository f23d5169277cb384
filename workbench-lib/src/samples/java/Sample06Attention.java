// 06. Attention over a sequence that is divided among the ranks, and its gradients.
//
//     ./braid exec workbench-lib/src/samples/java/Sample06Attention.java -n 2
//
// Prints, where … is any text:
//
//     | attention … causal zigzag by ring, 2 splits
//     | verified …
//     | gradients: verified …
//     | the key's gradient has 128 rows of 32 numbers
import braid.*;
import braid.model.*;

void main() {
  var world = ProcessGroup.world();

  // 256 tokens, 4 heads of 16 numbers, which share 2 heads of key and value. With causal attention
  // later tokens have more work; the zigzag layout gives every rank as much.
  var problem = AttentionSpec.of(256, 4, 16).kvHeads(2).causal().layout(TokenLayout.ZIGZAG);

  // Each rank reads the keys and values of one rank after another, each in two chunks.
  var tuning = ContextParallel.ring().splits(2);

  try (var forward = Pipeline.on(world).attention(problem).overlap(tuning).build()) {
    IO.println(problem + " by " + tuning);
    IO.println(forward.verify());

    // The gradients read the tensors of the forward pass in place: it runs before, and is closed
    // after.
    forward.run();
    try (var backward = Pipeline.on(world).backward(forward).build()) {
      IO.println("gradients: " + backward.verify());
      var shape = backward.keyGradient().shape();
      IO.println(
          "the key's gradient has %d rows of %d numbers".formatted(shape.get(0), shape.get(1)));
    }
  }
}
