package tuned;

import braid.ProcessGroup;
import braid.Tuner;

/// 10. A Maven project: tunes its layer on ranks that are processes, then runs it.
///
/// ```
/// mvn -DskipTests install                            # in Braid: puts the library into your repository
/// cd workbench-lib/src/samples/maven && mvn compile  # or in a copy of this folder
/// ~/braid/braid exec src/main/java/tuned/Tuned.java -n 2
/// ```
///
/// `exec` finds the classes of a project by their packages. Add its other dependencies:
/// `--class-path "$(mvn -q dependency:build-classpath -Dmdep.outputFile=/dev/stdout)"`.
///
/// Prints, where … is any text:
///
/// ```
/// | … unfused…
/// | pipelined, … split…: verified 262,144 values of 2 ranks: each equals the reference exactly
/// ```
final class Tuned {
  private Tuned() {}

  public static void main(String[] arguments) {
    var world = ProcessGroup.world();
    var layer = new Layer(512, 512, 256);
    var study = Tuner.on(world).gemm(layer.problem()).splits(1, 2, 4).repeats(8).run();
    System.out.println(study.headline());
    var tuning = study.fastest();
    try (var pipe = layer.on(world, tuning)) {
      System.out.println(tuning + ": " + pipe.verify());
      pipe.run();
    }
  }
}
