// 01. A problem, a tuning, and a pipeline that runs both.
//
//     ./braid exec workbench-lib/src/samples/java/Sample01FirstPipeline.java -n 2
//
// Every rank is a process that runs this main: with -n 2, there are two of them. Lines that all
// ranks print alike are shown once.
//
// Prints, where … is any text:
//
//     | all-gather-gemm m=768 n=512 k=256 fp32 by pipelined, 4 splits
//     | verified 393,216 values of 2 ranks: each equals the reference exactly
//     | my part of the output is 768 x 256
//     | the same result by ring, 2 splits
import braid.*;
import braid.model.*;

void main() {
  // The group of all ranks. On GPUs each rank has one; without a GPU, ranks run on the host.
  var world = ProcessGroup.world();

  // The problem: gather the rows of an input that is divided among the ranks, then multiply it by
  // this rank's columns of a weight. Sizes are global.
  var problem = GemmSpec.allGatherGemm(768, 512, 256);

  // The tuning: gather in four chunks, so that a chunk is multiplied while the next one travels.
  var tuning = Overlap.pipelined(4);

  try (var pipe = Pipeline.on(world).gemm(problem).overlap(tuning).build()) {
    IO.println(problem + " by " + tuning);

    // build() has filled the inputs with small integers. verify() runs once and compares every
    // value with the unfused reference; it throws if one is wrong.
    IO.println(pipe.verify());

    var shape = pipe.output().shape();
    IO.println("my part of the output is " + shape.get(0) + " x " + shape.get(1));

    // A tuning changes the time, never the result.
    try (var ring = pipe.with(Overlap.ring(2))) {
      pipe.run();
      ring.run();
      boolean same = Arrays.equals(pipe.output().toFloats(), ring.output().toFloats());
      IO.println((same ? "the same result by " : "another result by ") + ring.tuning());
    }
  }
}
