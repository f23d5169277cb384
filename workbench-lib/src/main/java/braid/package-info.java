/// Overlapped GEMM, attention and communication on ranks, for Java programs and notebooks.
///
/// This page is for a Java program without notebooks. A *rank* is a process with one GPU, or with
/// none on the host backend. All ranks run the same `main` and make the same calls.
///
/// ## The dependency
///
/// ```xml
/// <dependency>
///   <groupId>dev.braid</groupId>
///   <artifactId>braid-workbench-lib</artifactId>
///   <version>0.1.0-SNAPSHOT</version>
/// </dependency>
/// ```
///
/// `mvn -DskipTests install` in a checkout of Braid puts it into your local repository. It needs
/// Java 25, and the JVM's option `--enable-native-access=ALL-UNNAMED` where you start one yourself.
///
/// ## The first program
///
/// ```java
/// import braid.*;
/// import braid.model.*;
///
/// void main() {
///   var world = ProcessGroup.world();                           // all ranks
///   var problem = GemmSpec.allGatherGemm(3840, 2304, 640);
///   try (var pipe = Pipeline.on(world).gemm(problem).overlap(Overlap.pipelined(4)).build()) {
///     IO.println(pipe.verify());                                // throws if a value is wrong
///     pipe.profile(8);                                          // kept under runs/
///   }
/// }
/// ```
///
/// ## Ranks
///
/// | ranks are | started by | for |
/// |---|---|---|
/// | processes | `braid exec Program.java -n 4`, or `--class-path` and the source file of a project | measuring, on GPUs or on the host |
/// | threads | [LocalRanks#run] in your own JVM | unit tests and a debugger; host backend only |
/// | one | your own JVM: [ProcessGroup#world] has one rank | trying the API |
///
/// `braid` is the command of a checkout (`./braid`) or of an unpacked bundle. `braid exec` compiles
/// the program, starts the ranks, merges their output, names the rank and line of a failure, and
/// keeps profiles and studies under `runs/`.
///
/// ## The types
///
/// | to | use |
/// |---|---|
/// | describe a problem | [GemmSpec][braid.model.GemmSpec], [AttentionSpec][braid.model.AttentionSpec] |
/// | choose how it is overlapped | [Overlap][braid.model.Overlap], [ContextParallel][braid.model.ContextParallel], or your own [Schedule][braid.schedule.Schedule] |
/// | run, verify, time and profile it | [Pipeline]; several in order: [Chain] |
/// | find the fastest tuning | [Tuner], which returns a [Study][braid.evidence.Study] |
/// | measure PyTorch beside them | [Peers], whose steps a [Tuner] measures in the same rounds |
/// | bring your own data | [SymmetricTensor], which all ranks reach; [LocalTensor], for this rank alone |
/// | move data without a GEMM | [Collectives] |
/// | look at profiles of all ranks | [ProfileSet][braid.evidence.ProfileSet], [Runs][braid.evidence.Runs] |
/// | see what is supported | [Capabilities] |
///
/// A mistake that you can fix is a [BraidException][braid.model.BraidException] of one line: name,
/// rule, value, remedy. Close what you build, the latest first; a group closes what is left.
///
/// ## Where to go next
///
/// The samples in `workbench-lib/src/samples` are numbered, and each teaches one idea: a pipeline,
/// times and tuning, a schedule of your own, symmetric tensors and collectives, chains, attention,
/// ranks as threads, a Maven project.
@NullMarked
package braid;

import org.jspecify.annotations.NullMarked;
