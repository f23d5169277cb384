package braid.launcher.editing;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.compile.CellCompiler;
import braid.launcher.compile.Origins;
import braid.launcher.editing.Completions.Item;
import braid.launcher.editing.Completions.ItemKind;
import braid.model.MimeBundle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import jdk.jshell.execution.LocalExecutionControl;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The cursor is at `|`, or at the end.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class AssistantTest {
  private final CellCompiler compiler = new CellCompiler(new LocalExecutionControl());
  private final CellCompiler front = new CellCompiler(new LocalExecutionControl());
  private final Origins origins = new Origins();
  private final Assistant assistant =
      new Assistant(compiler, origins, () -> new Assistant.Scope(front, new Origins()), 4);

  @TempDir Path folder;

  @BeforeAll
  void declare() {
    for (var source :
        List.of(
            "import java.util.*;",
            "import java.util.stream.*;",
            "import braid.*;",
            "import braid.evidence.*;",
            "import braid.model.*;",
            "import braid.schedule.*;",
            "import braid.selftest.SelfTest;",
            "import static braid.model.DType.*;",
            "var quantity = new ArrayList<String>();",
            "int twice(int number) { return 2 * number; }",
            "record Point(int left, String name) {}")) {
      for (var event : compiler.eval(source)) {
        origins.put(event.snippet().id(), new Origins.Origin("cell 3", 2, "\n" + source));
      }
    }
  }

  @AfterAll
  void close() {
    compiler.close();
    front.close();
  }

  private Completions complete(String marked) {
    int cursor = marked.contains("|") ? marked.indexOf('|') : marked.length();
    return assistant.complete(marked.replaceFirst("\\|", ""), cursor);
  }

  private String inspect(String marked, int detail) {
    int cursor = marked.contains("|") ? marked.indexOf('|') : marked.length();
    return assistant
        .inspect(marked.replaceFirst("\\|", ""), cursor, detail)
        .map(bundle -> bundle.text())
        .orElse("nothing");
  }

  @ParameterizedTest
  @CsvSource(
      delimiterString = " => ",
      quoteCharacter = '`',
      value = {
        "quantity.addA => addAll( FUNCTION",
        "quantity.| => stream() FUNCTION",
        "Math.ma => max( FUNCTION",
        "Math.P => PI INSTANCE",
        "BF => BF16 INSTANCE",
        "GemmSpec.allG => allGatherGemm( FUNCTION",
        "new ArrayL => ArrayList( CLASS",
        "new Poi => Point( CLASS",
        "import java.util.Arr => ArrayList CLASS",
        "import java.util.conc => concurrent. MODULE",
        "import jav => java. MODULE",
        "import bra => braid. MODULE",
        "import braid.Pipel => Pipeline CLASS",
        "import braid.model.Gem => GemmSpec CLASS",
        "import braid.sch => schedule. MODULE",
        "Schedule.o => of( FUNCTION",
        "Schedule.on(`mine`, 2).fl => flag( FUNCTION",
        "Lane.Role.COMM => COMMUNICATION INSTANCE",
        "import static java.lang.Math.ma => max INSTANCE",
        "Stream.of(`a`).map(s -> s.toUp => toUpperCase( FUNCTION",
        "Stream.of(1).map(one -> { return on => one INSTANCE",
        "Stream.of(1).reduce((left, right) -> ri => right INSTANCE",
        "int f(int count) { System.out.println(cou => count INSTANCE",
        "for (int index = 0; index < 3; index++) { ind => index INSTANCE",
        "for (var word : List.of(\"a\")) { word.le => length() FUNCTION",
        "int f(String given) { return given.le => length() FUNCTION",
        "retu => return KEYWORD",
        "tw => twice( FUNCTION",
      })
  void namesAreCompleted(String code, String wanted) {
    int space = wanted.lastIndexOf(' ');
    var item = new Item(wanted.substring(0, space), ItemKind.valueOf(wanted.substring(space + 1)));
    assertThat(complete(code.replace('`', '"')).items()).contains(item);
  }

  @Test
  void declarationsBeforeTheCursorAreKnownBeforeTheCellRuns() {
    assertThat(complete("var fresh = \"\";\nfresh.subst").replacements()).contains("substring(");
    assertThat(complete("int g() { return 1; }\nvar fresh = \"\";\nfresh.subst").replacements())
        .contains("substring(");
    assertThat(
            complete("record Q(String left) {}\nvar q = new Q(\"\");\nq.left().subst")
                .replacements())
        .contains("substring(");
    assertThat(complete("import java.net.URI;\nURI.crea").replacements()).contains("create(");
    assertThat(complete("var fresh = 1;\nfre").replacements()).contains("fresh");
    assertThat(complete("var quantity = \"\";\nquantity.subst").replacements())
        .contains("substring(");
    assertThat(complete("record Fresh(int a) {}\nnew Fre").replacements()).contains("Fresh(");
    assertThat(
            complete("%%rank 0\nvar fresh = \"\";\n%who\nfresh.subst|\nint after = 3;")
                .replacements())
        .contains("substring(");
    assertThat(complete("%time Math.ma").replacements()).contains("max(");
  }

  /// Returns suggestions in their order, without those between the given ones.
  private List<String> ordered(String code, String... labels) {
    return complete(code).replacements().stream().filter(List.of(labels)::contains).toList();
  }

  @Test
  void verbsAreSuggestedFirstAndConstantsLast() {
    assertThat(ordered("Overlap.", "pipelined(", "ring(", "DEFAULT_SPLITS", "MAX_STREAMS"))
        .containsExactly("pipelined(", "ring(", "DEFAULT_SPLITS", "MAX_STREAMS");
    assertThat(complete("Overlap.").replacements()).startsWith("bulk()", "defaults()", "direct(");
    assertThat(complete("DType.").replacements()).startsWith("parse(", "valueOf(").endsWith("TF32");
    // Calls of a fluent chain come before accessors, also where the cell never ran.
    assertThat(ordered("Overlap.ring().", "splits()", "over(", "streams(", "columns()"))
        .containsExactly("over(", "streams(", "columns()", "splits()");
    assertThat(ordered("var o = Overlap.ring();\no.", "splits()", "over(", "streams("))
        .containsExactly("over(", "streams(", "splits()");
    assertThat(ordered("Pipeline.on(null).", "build()", "gemm(", "overlap("))
        .containsExactly("gemm(", "overlap(", "build()");
    // Names of a fitting type come first.
    assertThat(ordered("int count = Overlap.", "pipelined(", "DEFAULT_SPLITS"))
        .containsExactly("DEFAULT_SPLITS", "pipelined(");
  }

  @Test
  void factoriesOrConstantsOfAnArgumentsTypeAreSuggestedFirst() {
    assertThat(complete("Pipeline.on(null).overlap(").replacements())
        .startsWith("Overlap.bulk()", "Overlap.defaults()")
        .containsSubsequence(
            "Overlap.direct(", "Overlap.pipelined(", "ContextParallel.ring()", "twice(")
        .doesNotContain("valueOf(", "values()");
    assertThat(complete("Pipeline.on(null).overlap(Ov").replacements())
        .startsWith("Overlap.bulk()")
        .contains("Overlap");
    assertThat(complete("Pipeline.on(").replacements()).startsWith("ProcessGroup.world()");
    assertThat(complete("GemmSpec.allGatherGemm(1, 2, 3).dtype(").replacements())
        .containsSubsequence("BF16", "FP16", "TF32", "twice(")
        .doesNotContain("valueOf(", "values()");
    assertThat(complete("Transport.").replacements()).contains("valueOf(");
  }

  @Test
  void methodsOfObjectAreSuggestedOnlyIfNothingElseFits() {
    for (var code :
        List.of("Overlap.ring().", "quantity.", "new Point(1, \"\").", "Pipeline.on(null).")) {
      assertThat(complete(code).replacements())
          .as(code)
          .isNotEmpty()
          .doesNotContain("getClass()", "hashCode()", "notify()", "wait(", "equals(", "toString()");
    }
    assertThat(complete("quantity.toS").replacements()).containsExactly("toString()");
  }

  @Test
  void aVariableIsExplainedByTheCommentOfItsType() {
    assertThat(inspect("Overlap how = Overlap.ring();\nhow", 0))
        .startsWith("Overlap how\n    The tuning: how the communication is overlapped")
        .contains("splits: number of chunks");
    compiler.eval("Study measured = null;");
    assertThat(inspect("measured", 0)).startsWith("Study measured\n    Measurements of the tuner");
    assertThat(inspect("int[] counts = {1};\ncounts", 0)).isEqualTo("int[] counts");
    assertThat(inspect("int count = 1;\ncount", 0)).isEqualTo("int count");
  }

  /// Jupyter's page breaks longer lines anywhere.
  @Test
  void explanationsBreakBetweenWords() {
    for (var name :
        List.of(
            "Overlap", "GemmSpec", "Tuner", "Study", "Pipeline.on(null).gemm", "ProcessGroup")) {
      var text = inspect(name, 1);
      assertThat(text.lines().filter(line -> !line.startsWith("        ")))
          .as(name)
          .allMatch(line -> line.length() <= 76);
    }
    // Words of the source, in its order: nothing is lost where lines are broken.
    var source =
        "Then all are measured in rounds whose order a seed shuffles, the unfused reference twice";
    assertThat(inspect("Tuner", 0).replaceAll("\\s+", " ")).contains(source);
    // Code keeps its lines.
    assertThat(inspect("GemmSpec", 0))
        .contains(
            "        output = value;                      // rounded when it is stored; fp8 saturates");
  }

  @Test
  void eachKindOfCellsCompletesItsOwnNames() {
    compiler.eval("var onlyOnRanks = 1;");
    front.eval("var onlyInFront = 1;");
    assertThat(complete("only").replacements()).containsExactly("onlyOnRanks");
    assertThat(complete("%%front\nonly").replacements()).containsExactly("onlyInFront");
    assertThat(complete("%%time\n%%front\nonly").replacements()).containsExactly("onlyInFront");
    assertThat(inspect("%%front\nonlyInFront|", 0)).startsWith("int onlyInFront");
  }

  /// The compiler's error names the factory, see HintsTest.
  @Test
  void constructorsThatAreNotPublicAreNotSuggested() {
    assertThat(complete("new Pipel").replacements()).isEmpty();
    assertThat(complete("new Tun").replacements()).isEmpty();
    assertThat(complete("new Stud").replacements()).contains("Study(");
    assertThat(complete("Pipeline.o").replacements()).contains("on(");
  }

  @Test
  void anOverloadIsListedOnceAndAnOpenBracketIsNotRepeated() {
    assertThat(complete("Math.ma").replacements()).containsOnlyOnce("max(");
    var found = complete("Math.ma|(1, 2)");
    assertThat(found.replacements()).containsOnlyOnce("max").doesNotContain("max(");
    assertThat(found.start()).isEqualTo(5);
    assertThat(found.end()).isEqualTo(7);
  }

  @Test
  void nothingIsSuggestedInsideCommentsAndQuotes() {
    for (var code : List.of("// quant", "/* quant", "String s = \"quant", "\"\"\"\nquant", "'q")) {
      assertThat(complete(code).items()).as(code).isEmpty();
    }
    assertThat(complete("/* quant */ quant").replacements()).contains("quantity");
    assertThat(complete("String s = \"\\\"\" + quant").replacements()).contains("quantity");
  }

  @Test
  void magicsAreCompletedWithTheirArguments() throws Exception {
    assertThat(complete("%%f").replacements()).containsExactly("%%front");
    assertThat(complete("%ti").replacements()).containsExactly("%time");
    assertThat(complete("1;\n%o").replacements()).containsExactly("%output", "%output-limit");
    assertThat(complete("%output ").replacements()).containsExactly("all", "first", "diff");
    assertThat(complete("%output d").replacements()).containsExactly("diff");
    assertThat(complete("%%rank 0,").replacements()).containsExactly("0", "1", "2", "3");
    assertThat(complete("%%rank 0,").start()).isEqualTo(9);
    var jar = Files.createFile(folder.resolve("some.jar"));
    Files.createDirectory(folder.resolve("someFolder"));
    assertThat(complete("%jars " + folder + "/so").items())
        .containsExactly(
            new Item(jar.toString(), ItemKind.PATH),
            new Item(folder + "/someFolder/", ItemKind.PATH));
    assertThat(complete("%jars /nowhere/").items()).isEmpty();
    assertThat(inspect("%output", 0))
        .startsWith("%output all|first|diff ")
        .contains("show every rank's lines");
  }

  @Test
  void ourApiIsExplainedByItsOwnComments() {
    assertThat(inspect("Overlap.pipe|lined(4)", 0))
        .startsWith("Overlap Overlap.pipelined(int splits)")
        .contains("Returns a pipelined collective in that number of chunks.");
    assertThat(inspect("GemmSpec.allGatherGemm(1, |", 0)).contains("int m").contains("    ");
    assertThat(inspect("Overlap.DEFAULT_SPLITS", 0))
        .startsWith("int Overlap.DEFAULT_SPLITS")
        .contains("Default chunks of a pipelined collective");
    assertThat(inspect("Pipeline", 0)).startsWith("Pipeline\n    ");
    assertThat(inspect("Overl|ap", 0)).contains("splits: number of chunks");
    assertThat(inspect("Schedule.on(\"mine\", 2).fl|ag(\"begun\", 2)", 0))
        .startsWith("Flag Schedule.Builder.flag(String name, int words)");
    assertThat(inspect("Lane", 0)).contains("A queue of each rank");
    assertThat(inspect("Profile", 0)).contains("One rank's record of a run");
    assertThat(inspect("Study", 0)).contains("Measurements of the tuner");
    assertThat(inspect("SelfTest", 0)).contains("Self-test of a machine");
    assertThat(inspect("Pipeline.on(null).gemm", 0))
        .startsWith("Pipeline.Builder Pipeline.Builder.gemm(");
    var bundle = assistant.inspect("Overlap", 7, 0).orElseThrow();
    assertThat(bundle.data().get(MimeBundle.MARKDOWN))
        .startsWith("```java\n")
        .contains("- `splits`:");
  }

  @Test
  void overloadsAreToldBrieflyUnlessMoreIsAskedFor() {
    var brief = inspect("Math.max", 0);
    assertThat(brief).contains("int Math.max(int a, int b)", "double Math.max(double a, double b)");
    assertThat(inspect("Math.max", 1).length()).isGreaterThanOrEqualTo(brief.length());
    assertThat(inspect("nowhere", 0)).isEqualTo("nothing");
  }

  @Test
  void declarationsOfCellsAreExplainedWithTheirCell() {
    assertThat(inspect("quantity", 0))
        .startsWith("ArrayList<String> quantity\ndeclared in cell 3, line 2");
    assertThat(inspect("twice", 0)).isEqualTo("int twice(int number)\ndeclared in cell 3, line 2");
    assertThat(inspect("Point", 0)).contains("Point(int left, String name)").contains("cell 3");
  }

  @Test
  void bracketsInQuotesAndCommentsDoNotIndent() {
    assertThat(assistant.completeness("while (true) { // {\n  String s = \"((\";").indent())
        .isEqualTo("    ");
    assertThat(assistant.completeness("f(() -> {").indent()).isEqualTo("        ");
    assertThat(assistant.completeness("%time 1 +").status())
        .isEqualTo(Completeness.Status.INCOMPLETE);
    assertThat(assistant.completeness("%%front\n1").status())
        .isEqualTo(Completeness.Status.COMPLETE);
  }
}
