package braid.launcher.compile;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.launcher.compile.CellCompiler.Piece;
import java.lang.reflect.Constructor;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.execution.LocalExecutionControl;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class HintsTest {
  private static final OtherCells FRONT = OtherCells.front(Set.of("profiles", "mine")::contains);

  private final CellCompiler compiler = new CellCompiler(new LocalExecutionControl());

  @BeforeAll
  void declare() {
    for (var source :
        List.of(
            "import java.util.*;",
            "import braid.*;",
            "import braid.evidence.*;",
            "import braid.model.*;",
            "import braid.schedule.*;",
            "import braid.selftest.SelfTest;",
            "import static braid.model.DType.*;",
            "import static braid.Display.*;",
            "import static braid.model.Method.*;",
            "import static braid.model.Transport.*;",
            "ProcessGroup world = null;",
            "int splitCount = 4;",
            "int halved(int number) { return number / 2; }",
            "record Shape(int rows, int columns) {}",
            "enum Color { RED }",
            "SymmetricTensor tensor = null;",
            "var shape = new Shape(1, 2);",
            "var spec = GemmSpec.allGatherGemm(64, 64, 64);")) {
      assertThat(compiler.eval(source)).allMatch(event -> event.exception() == null);
    }
  }

  @AfterAll
  void close() {
    compiler.close();
  }

  private List<String> error(String source, OtherCells other) {
    var cell = new Cell("cell 7", source);
    return compiler.eval(source).stream()
        .flatMap(
            event -> compiler.errors(cell, new Piece.Java(source, 1, true), event, other).stream())
        .findFirst()
        .orElseThrow()
        .failure()
        .traceback();
  }

  private List<String> hints(String source) {
    return error(source, FRONT).stream()
        .map(String::strip)
        .filter(line -> line.startsWith("did you mean") || line.contains(" exists in "))
        .toList();
  }

  @ParameterizedTest
  @CsvSource(
      delimiterString = " => ",
      quoteCharacter = '\0',
      value = {
        "allgatherGemm(64, 64, 64) => `GemmSpec.allGatherGemm`",
        "GemmSpec.allgatherGemm(64, 64, 64) => `GemmSpec.allGatherGemm`",
        "Tunner.on(world) => `Tuner`",
        "Tunner mine2 = null; => `Tuner`",
        "bf16 => `BF16`",
        "spec.dtype(BF61) => `BF16`",
        "DType.bf16 => `DType.BF16`",
        "copy_engine => `COPY_ENGINE`",
        "Overlap.pipelnied(4).streams(2) => `Overlap.pipelined`",
        "Overlap.pipelined(4).stream(2) => `streams`",
        "spec.dtyp(BF16) => `dtype`",
        "pipelined(4) => `Overlap.pipelined`",
        "Stage.CPOY => `Stage.COPY`",
        "Study.Trail t = null; => `Study.Trial`",
        "displya(3) => `display`",
        "import braid.model.GemSpec; => `GemmSpec`",
        "import braid.schedule.simulation.Machin; => `Machine`",
        "splitCont + 1 => `splitCount`",
        "SplitCount + 1 => `splitCount`",
        "for (int i = 0; i < 3; i++) { splitCunt++; } => `splitCount`",
        "halvd(3) => `halved`",
        "new Shap(1, 2) => `Shape`",
        "\"text\".subString(1) => `substring`",
      })
  void aHintSuggestsTheClosestPublicName(String source, String name) {
    assertThat(hints(source)).containsExactly("did you mean " + name + "?");
  }

  @Test
  void aHintSuggestsMembersOfEveryTypeOfTheApi() throws Exception {
    int tried = 0;
    for (var type :
        List.of(braid.Pipeline.class, braid.Chain.class, braid.schedule.Schedule.class)) {
      for (var method : type.getDeclaredMethods()) {
        var name = method.getName();
        if (Modifier.isPublic(method.getModifiers())
            && Modifier.isStatic(method.getModifiers())
            && name.length() > 6) {
          tried++;
          var wrong = type.getSimpleName() + "." + name + "x()";
          assertThat(error(wrong, FRONT).getLast())
              .as(wrong)
              .contains("`" + type.getSimpleName() + "." + name);
        }
      }
    }
    for (var constant : braid.model.DType.values()) {
      tried++;
      var wrong = constant.name().toLowerCase(java.util.Locale.ROOT);
      assertThat(hints(wrong)).containsExactly("did you mean `" + constant.name() + "`?");
    }
    assertThat(tried).isGreaterThan(5);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "frobnicate(3)",
        "zz",
        "x1 + 1",
        "GemmSpec.frobnicate(1)",
        "spec.zzzzzzz()",
        "new Frobnicator()",
        "import braid.model.Frobnicator;",
        "shape.hight()",
        "Shape.Inner x = null;",
        "\"a\" - 1",
        "int wrong = \"text\";",
      })
  void aHintSuggestsNoDistantName(String source) {
    assertThat(error(source, FRONT)).isNotEmpty();
    assertThat(hints(source)).isEmpty();
  }

  /// A call is suggested if it compiles with its arguments; the last line of the error is the hint.
  @ParameterizedTest
  @CsvSource(
      delimiterString = " => ",
      quoteCharacter = '\0',
      value = {
        "Overlap.split(4) => `Overlap.splits(n)` is now `Overlap.pipelined(n)`: `Overlap.pipelined(4)`",
        "Overlap.splits(4).streams(2) => `Overlap.splits(n)` is now `Overlap.pipelined(n)`: `Overlap.pipelined(4).streams(2)`",
        "Runs.Kind kind = null; => `Runs.Kind` is now `Runs.RunKind`: `Runs.RunKind kind = null;`",
        "Runs.Entry run = null; => `Runs.Entry` is now `Runs.SavedRun`: `Runs.SavedRun run = null;`",
        "CollectiveSpec sum = null; => the schedules of collectives are internal now; a collective is a method of `Collectives.on(world)`",
        "import braid.GemmSpec; => write `import braid.model.GemmSpec;`",
        "Tuner.on(world).compare(null) => `Tuner.compare` is now `Tuner.on(world).steps(\"title\").step(\"name\", chain, pipeline or code).run()`",
        "Tuner.on(world).steps(\"a\").run().bestName() => `study.bestName()` is now `study.best()`, whose text is the name: `Tuner.on(world).steps(\"a\").run().best()`",
        "Tuner.on(world).steps(\"a\").run().tiedNames() => `study.tiedNames()` is now `study.ties()`: `Tuner.on(world).steps(\"a\").run().ties()`",
        "Tuner.on(world).gemm(spec).run().fastestOverlap() => `study.fastestOverlap()` is now `study.fastest()`: `Tuner.on(world).gemm(spec).run().fastest()`",
        "Tuner.on(world).gemm(spec).run().trials().getFirst().overlap() => `trial.overlap()` is now `trial.configuration()`: `Tuner.on(world).gemm(spec).run().trials().getFirst().configuration()`",
        "Tuner.on(world).steps(\"a\").run().medianNanos(\"b\") => a configuration is found by its name: `study.medianNanos(study.configuration(\"name\"))`",
        "Overlap how = Study.fromJson(\"\").best(); => a loaded study may be of anything: write `study.cast(Overlap.class).best()`",
        "Attention.on(world).spec(null).method(null).build() => `Attention.on(group).spec(spec).method(how)` is now `Pipeline.on(group).attention(spec).overlap(how)`",
        "Attention.on(world).backward().forward(null) => `Attention.on(group).backward().forward(attention)` is now `Pipeline.on(group).backward(attention)`",
        "ChainLink link = null; => attention, its backward pass and other links of a chain are a `Pipeline` now: `Pipeline link = null;`",
        "Pipeline.on(world).gemm(spec).build().overlap() => the tuning of a pipeline is `pipe.tuning()`: `Pipeline.on(world).gemm(spec).build().tuning()`",
        "Pipeline.on(world).gemm(spec).build().spec() => the problem of a pipeline is `pipe.problem()`, a GemmSpec, an AttentionSpec or an AttentionGradientSpec: `Pipeline.on(world).gemm(spec).build().problem()`",
        "Pipeline.on(world).gemm(spec).replay() => a tuning or a schedule is replayed: `overlap(how.replay())`, `schedule(plan.replay())`",
        "PipelineTensor x = null; => `PipelineTensor` is now `Tensor`: `Tensor x = null;`",
        "AttentionSpec.of(8, 1, 4).dropout(0) => attention has no dropout, since it has no random state; leave it out, or drop numbers of the output",
        "Chain.on(world).links() => `chain.links()` is now `chain.pipelines()`: `Chain.on(world).pipelines()`",
        "world.size => write `world.size()`",
        "world.getRank() => did you mean `rank`?",
        "world.world_size() => did you mean `size`?",
        "world.rank(3) => it is declared as `rank()`",
        "GemmSpec.allgatherGemm(64) => the closest is `GemmSpec.allGatherGemm(int m, int n, int k)`",
        "Overlap.pipelnied(\"4\") => the closest is `Overlap.pipelined(int splits)`",
        "Overlap.PIPELINED => the closest is `Overlap.pipelined(int splits)`",
        "MemoryKind.NVLINK => `MemoryKind` has AUTO, NATIVE, IPC, NCCL, NVSHMEM",
        "Color color = RED; => did you mean `Color.RED`?",
        "Collectives.allReduce(tensor) => `allReduce` needs a value of Collectives: write `Collectives.on(world).allReduce(tensor)`",
        "world.all_reduce(tensor) => did you mean `Collectives.on(world).allReduce(tensor)`?",
        "barrier() => did you mean `world.barrier()`?",
        "GemmSpec(64, 64, 64) => did you mean `GemmSpec.allGatherGemm(64, 64, 64)`, `GemmSpec.gemmAllReduce(64, 64, 64)` or `GemmSpec.gemmReduceScatter(64, 64, 64)`?",
        "new Pipelin(world) => Pipeline has no public constructor: begin with Pipeline.on(world)",
        "spec.dtype(\"bf16\") => write `spec.dtype(DType.BF16)`",
        "world.playLink(\"1GB/s,20us\") => write `world.playLink(Link.parse(\"1GB/s,20us\"))`",
        "Tuner.on(world).splits(List.of(1, 2)) => write `Tuner.on(world).splits(1, 2)`",
        "ArayList<String> names = null; => did you mean `ArrayList`?",
        "Sytem.out.println(3) => did you mean `System`?",
        "Table table = null; => import it first: `import tech.tablesaw.api.Table;`",
        "spec.dtype(unheardOf) => no cell that has run declares `unheardOf`",
      })
  void aHintSuggestsCodeThatCompiles(String source, String hint) {
    assertThat(error(source, FRONT).getLast().strip()).isEqualTo(hint);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "Overlap how = Tuner.on(world).steps(\"a\").run().best();",
        "Overlap how = Tuner.on(world).attention(AttentionSpec.of(64, 4, 8)).run().best();",
        "Study<Overlap> study = Tuner.on(world).steps(\"a\").run();",
        "Overlap how = Tuner.on(world).gemm(spec).schedule(\"mine\", null).run().best();"
      })
  void aStudyHasConfigurationsOfItsProblem(String source) {
    assertThat(error(source, FRONT).getFirst()).contains("incompatible types");
    assertThat(compiler.eval("Overlap how = Tuner.on(world).gemm(spec).run().best();").getFirst())
        .extracting(SnippetEvent::status)
        .isEqualTo(Snippet.Status.VALID);
  }

  @Test
  void aVariableWhoseCellFailedIsNamedAsSuch() {
    assertThat(error("Unheard broken;", FRONT)).isNotEmpty();
    assertThat(error("broken.run()", FRONT))
        .contains("  the cell that declares `broken` failed; correct and run it first");
  }

  @Test
  void oneMistakeIsExplainedOnce() {
    assertThat(error("if (splitCount == 4 and halved(4) == 2) { }", FRONT))
        .containsExactly(
            "cell 7, line 1: error: ')' expected",
            "    if (splitCount == 4 and halved(4) == 2) { }",
            "                       ^",
            "  Java writes `&&`: `if (splitCount == 4 && halved(4) == 2) { }`");
  }

  @Test
  void suggestionsLeaveTheSessionAsItIs() {
    var before = compiler.shell().snippets().count();
    assertThat(error("splitCount = halvd(splitCount) + len(\"text\");", FRONT)).isNotEmpty();
    assertThat(compiler.shell().snippets().count()).isEqualTo(before + 1);
    assertThat(compiler.declares("splitCount")).isTrue();
    assertThat(compiler.declares("$Session")).isFalse();
  }

  @Test
  void theErrorIsTheCompilersWithOneLineMore() {
    assertThat(error("allgatherGemm(64, 64, 64)", FRONT))
        .containsExactly(
            "cell 7, line 1: error: cannot find symbol",
            "    allgatherGemm(64, 64, 64)",
            "    ^",
            "    symbol:   method allgatherGemm(int,int,int)",
            "  did you mean `GemmSpec.allGatherGemm`?");
  }

  @Test
  void aNameOfTheOtherKindOfCellsIsExplained() {
    var inFront = "`profiles` exists in %%front cells only; begin the cell with %%front";
    assertThat(hints("profiles.study()")).containsExactly(inFront);
    assertThat(hints("mine + 1")).containsExactly(inFront.replace("profiles", "mine"));
    var ranks = OtherCells.ranks("world2"::equals);
    assertThat(error("world2.rank()", ranks))
        .contains("  `world2` exists in rank cells only; leave out %%front");
    // A member of that name is not the other cells' variable.
    assertThat(hints("spec.profiles()")).isEmpty();
  }

  @Test
  void aDeclarationThatWaitsForANameSuggestsItToo() {
    var waiting = compiler.eval("int later() { return splitConut + profiles; }").getFirst();
    assertThat(compiler.lacks(waiting, FRONT).orElseThrow())
        .contains("variable splitConut (did you mean `splitCount`?)")
        .contains("variable profiles (`profiles` exists in %%front cells only");
  }

  @Test
  void aClassWithoutPublicConstructorNamesTheFirstCall() {
    var expected =
        "cell 7, line 1: error: Pipeline has no public constructor: begin with Pipeline.on(world)";
    for (var call :
        List.of("new Pipeline(world)", "new Pipeline()", "var p = new Pipeline(1, 2);")) {
      assertThat(error(call, FRONT)).as(call).first().isEqualTo(expected);
      assertThat(error(call, FRONT)).hasSize(3).noneMatch(line -> line.contains("PlanCache"));
    }
    assertThat(error("new Tuner(world)", FRONT).getFirst())
        .endsWith("Tuner has no public constructor: begin with Tuner.on(world)");
    assertThat(error("new TensorView()", FRONT).getFirst())
        .startsWith(
            "cell 7, line 1: error: TensorView has no public constructor: one is returned by ");
    // A public constructor with other parameters is the compiler's business.
    assertThat(error("new Study(3)", FRONT))
        .anyMatch(line -> line.contains("GemmSpec") || line.contains("long"));
    assertThat(error("new Study(3)", FRONT)).noneMatch(line -> line.contains("no public"));
    assertThat(error("new Shape(1)", FRONT)).noneMatch(line -> line.contains("no public"));
  }

  static Stream<Class<?>> builtByFactories() {
    return Stream.of(
        braid.Pipeline.class,
        braid.Chain.class,
        braid.Tuner.class,
        braid.Collectives.class,
        braid.ProcessGroup.class,
        braid.SymmetricTensor.class,
        braid.LocalTensor.class,
        braid.Display.class,
        braid.schedule.Schedule.class,
        braid.evidence.Charts.class,
        braid.evidence.Runs.class);
  }

  @ParameterizedTest
  @MethodSource("builtByFactories")
  void everyFactoryThatIsNamedExists(Class<?> type) {
    assertThat(Stream.of(type.getDeclaredConstructors()).map(Constructor::getModifiers))
        .noneMatch(Modifier::isPublic);
    var first = error("new " + type.getSimpleName() + "()", FRONT).getFirst();
    var begin = "has no public constructor: begin with ";
    assertThat(first).contains(begin);
    var call = first.substring(first.indexOf(begin) + begin.length()).split("\\(", -1)[0];
    assertThat(call).startsWith(type.getSimpleName() + ".");
    var method = call.substring(call.indexOf('.') + 1);
    assertThat(Stream.of(type.getMethods()))
        .anyMatch(m -> m.getName().equals(method) && Modifier.isStatic(m.getModifiers()));
  }
}
