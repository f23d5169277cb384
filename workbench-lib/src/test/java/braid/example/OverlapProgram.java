package braid.example;

import braid.LocalRanks;
import braid.Pipeline;
import braid.ProcessGroup;
import braid.SymmetricTensor;
import braid.evidence.ProfileSet;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Profile;
import java.util.ArrayList;
import java.util.Collections;

/// Compares an overlapped all-gather and GEMM with the unfused reference, in a plain program.
///
/// The ranks are threads of this process on the host backend. `braid exec` runs programs on ranks
/// that are processes, also on GPUs.
///
/// ```
/// ./braid --version    # builds Braid
/// "$JAVA_HOME/bin/java" --enable-native-access=ALL-UNNAMED -Dslf4j.internal.verbosity=ERROR \
///   -cp 'launcher/target/current/*' \
///   workbench-lib/src/test/java/braid/example/OverlapProgram.java 2
/// ```
public final class OverlapProgram {
  private static final GemmSpec PROBLEM = GemmSpec.allGatherGemm(1920, 1152, 640);
  private static final Link LINK = Link.parse("0.25GB/s,20us");
  private static final int ITERATIONS = 8;

  private OverlapProgram() {}

  /// Takes the number of ranks, 2 by default.
  public static void main(String[] args) {
    int ranks = args.length == 0 ? 2 : Integer.parseInt(args[0]);
    for (var how : new Overlap[] {Overlap.unfused(), Overlap.pipelined(4)}) {
      var profiles = Collections.synchronizedList(new ArrayList<Profile>());
      LocalRanks.run(ranks, LINK, world -> profiles.add(profile(world, how)));
      var set = ProfileSet.of(profiles);
      System.out.println(how + ": verified");
      System.out.println(set.display().text());
    }
  }

  /// Sets up, verifies and profiles one pipeline. All ranks of the group call it together.
  public static Profile profile(ProcessGroup world, Overlap how) {
    long rows = PROBLEM.m() / world.size();
    try (var x = SymmetricTensor.on(world).shape(rows, PROBLEM.k()).dtype(DType.FP32).allocate();
        var pipe = Pipeline.on(world).gemm(PROBLEM).overlap(how).input(x).build()) {
      x.local().fillIntegers(world.rank());
      world.barrier();
      pipe.verify();
      return pipe.profile(ITERATIONS);
    }
  }
}
