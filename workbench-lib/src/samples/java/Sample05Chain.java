// 05. Two pipelines on one tensor, as a chain that is tuned as a whole.
//
//     ./braid exec workbench-lib/src/samples/java/Sample05Chain.java -n 2
//
// Prints, where … is any text:
//
//     | verified …: each equals the reference exactly
//     | up: …
//     | down: …
import braid.*;
import braid.model.*;

void main() {
  var world = ProcessGroup.world();
  int tokens = 512;
  int width = 512;
  int features = 256;

  // A layer: features -> width by an all-gather and a GEMM, width -> features by a GEMM and a
  // reduce-scatter. Between them is a tensor of this rank alone, which you allocate and close.
  var wide = LocalTensor.on(world).shape(tokens, width / world.size()).allocate();
  var up =
      Pipeline.on(world).gemm(GemmSpec.allGatherGemm(tokens, width, features)).output(wide).build();
  var down =
      Pipeline.on(world)
          .gemm(GemmSpec.gemmReduceScatter(tokens, features, width))
          .input(wide)
          .build();

  // On each rank a link begins when the one before it has ended there; the host is not in between.
  try (wide;
      up;
      down;
      var layer = Chain.of(up, down)) {
    IO.println(layer.verify());

    // Finds a tuning for each link by the time of the whole chain.
    var study = Tuner.on(world).splits(1, 2).repeats(8).tune(layer);
    IO.println("up: " + study.overlaps().get(0));
    IO.println("down: " + study.overlaps().get(1));
    try (var tuned = layer.with(study.overlaps())) {
      tuned.run();
    }
  }
}
