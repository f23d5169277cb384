// 07. Ranks that are threads of one process: for unit tests, a debugger, and a first look.
//
//     ./braid --version    # builds Braid
//     "$JAVA_HOME/bin/java" --enable-native-access=ALL-UNNAMED -Dslf4j.internal.verbosity=ERROR \
//       -cp 'launcher/target/current/*' workbench-lib/src/samples/java/Sample07ThreadRanks.java 2
//
// The argument is the number of ranks. Prints, where … is any text:
//
//     | unfused: verified 737,280 values of 2 ranks: each equals the reference exactly
//     | rank  exposed ms  iteration ms …
//     | pipelined, 4 splits: verified 737,280 values of 2 ranks: each equals the reference exactly
//     | 1 …
import braid.*;
import braid.evidence.*;
import braid.model.*;

void main(String[] arguments) {
  int ranks = arguments.length == 0 ? 2 : Integer.parseInt(arguments[0]);
  var problem = GemmSpec.allGatherGemm(960, 768, 256);

  // The link that the host backend simulates. Without one, copies are as fast as memory.
  var link = Link.parse("0.25GB/s,20us");

  for (var tuning : List.of(Overlap.unfused(), Overlap.pipelined(4))) {
    var profiles = Collections.synchronizedList(new ArrayList<Profile>());
    // Calls the body on each rank and waits for all of them. If one fails, so does run.
    LocalRanks.run(
        ranks,
        link,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(problem).overlap(tuning).build()) {
            var verified = pipe.verify();
            if (world.rank() == 0) {
              IO.println(tuning + ": " + verified);
            }
            profiles.add(pipe.profile(4));
          }
        });
    // The profiles of all ranks as one: a row per rank.
    IO.println(ProfileSet.of(profiles).display().text());
  }
}
