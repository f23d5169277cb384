// 04. Memory that every rank reaches, and collectives on it.
//
//     ./braid exec workbench-lib/src/samples/java/Sample04SymmetricTensors.java -n 2
//
// Prints:
//
//     | [1] the next rank has stored 100
//     | the next rank has stored 101
//     | the sum begins with 3.0
//     | my half of the sum is the all-reduce's: true
import braid.*;
import braid.model.*;

void main() {
  var world = ProcessGroup.world();
  int me = world.rank();
  int next = (me + 1) % world.size();

  // A part of the same shape on every rank. local() is my part, on(r) is the part of rank r,
  // all() is one view of all parts.
  try (var x = SymmetricTensor.on(world).shape(4).name("x").allocate()) {
    x.local().fill(me);
    world.barrier(); // [A] every rank has filled its own part
    x.on(next).set(100 + me, 0);
    world.barrier(); // [B] every rank has stored into its neighbor's
    IO.println("the next rank has stored " + (int) x.local().get(0));
  }

  // Collectives read and write symmetric tensors. With one tensor they return a new one, which
  // you close.
  var comm = Collectives.on(world);
  try (var a = SymmetricTensor.on(world).shape(1024).name("a").allocate()) {
    a.local().fill(me + 1);
    try (var sum = comm.allReduce(a);
        var part = comm.reduceScatter(a)) {
      // When a collective returns, its result is complete on this rank: no barrier is needed.
      IO.println("the sum begins with " + sum.local().get(0));
      long rows = 1024 / world.size();
      var mine = sum.local().rows(me * rows, rows);
      boolean equal = Arrays.equals(part.local().toFloats(), mine.toFloats());
      IO.println("my half of the sum is the all-reduce's: " + equal);
    }
  }
}
