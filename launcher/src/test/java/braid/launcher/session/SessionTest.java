package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cell.Outcome;
import braid.launcher.editing.Completeness.Status;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// Cells on three real ranks.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class SessionTest {
  private static final String RANK = "System.getenv(\"RANK\")";

  private Session session;
  private int cells;
  private Recorded output = new Recorded();

  @BeforeAll
  void start(@TempDir Path home) {
    session = Session.start(new SessionOptions(3, BackendKind.HOST, Optional.empty(), home));
  }

  @AfterAll
  void close() {
    session.close();
  }

  @BeforeEach
  void fresh() {
    output = new Recorded();
  }

  private Outcome run(String source) {
    return session.run(new Cell("cell " + ++cells, source), output);
  }

  private String result(String source) {
    var outcome = run(source);
    assertThat(outcome.failure()).isEmpty();
    return outcome.result().orElseThrow().text();
  }

  private CellFailure failure(String source) {
    return run(source).failure().orElseThrow();
  }

  @Test
  void aCellKnowsTheDeclarationsOfEarlierCells() {
    assertThat(run("int a = 20; int twice(int n) { return 2 * n; }").succeeded()).isTrue();
    assertThat(result("twice(a) + 2")).isEqualTo("42");
  }

  @Test
  void aVariableWhoseDeclarationFailedIsNamed() {
    assertThat(failure("String text = Path.of(\"none\").toString().substring(9);").name())
        .contains("StringIndexOutOfBounds");
    assertThat(failure("text.length()").message())
        .isEqualTo("`text` is null: the cell that declares it failed; run that cell again");
    run("String other = null;");
    assertThat(failure("other.length()").message())
        .isEqualTo("Cannot invoke \"String.length()\" because \"other\" is null");
    run("String text = \"now\";");
    assertThat(result("text.length()")).isEqualTo("3");
    run("%%front\nString seen = Path.of(\"none\").toString().substring(9);");
    assertThat(failure("%%front\nseen.length()").message())
        .isEqualTo("`seen` is null: the cell that declares it failed; run that cell again");
  }

  @Test
  void schedulesNeedNoImportAndTheirNamesStayFree() {
    assertThat(
            result(
                "Schedule.of(GemmSpec.allGatherGemm(8, 8, 8), Overlap.pipelined(2), 2).findings()"))
        .isEqualTo("nothing found in 2 ranks × 2 iterations");
    assertThat(result("Part.INPUT + \" \" + Lane.Role.COMPUTE")).isEqualTo("input COMPUTE");
    // The package has an internal class of the same name as this class of the usual imports.
    assertThat(result("Flow.defaultBufferSize()")).isEqualTo("256");
    assertThat(result("import java.nio.Buffer;\nBuffer.class.getName()"))
        .isEqualTo("java.nio.Buffer");
    assertThat(result("record Step(int size) {}\nnew Step(3).size()")).isEqualTo("3");
    assertThat(result("new Step(4).size()")).isEqualTo("4");
  }

  @Test
  void aResultThatDiffersBetweenRanksIsShownForEach() {
    assertThat(result(RANK)).isEqualTo("[0] 0\n[1] 1\n[2] 2");
  }

  @Test
  void aCellOfManyStatementsIsToldHowItIsCompiledFaster() {
    var many = run("throw new Error(\"first\");\n" + "int a = 1;\n".repeat(999));
    assertThat(many.failure().orElseThrow().message()).contains("first");
    assertThat(output.err.toString())
        .contains(
            "note: each of the 1000 statements of this cell is compiled and run separately, in 20 ms or more; a method or a block { } of them is compiled at once");
    run("throw new Error(\"first\");\n" + "int a = 1;\n".repeat(998));
    assertThat(output.err.toString()).containsOnlyOnce("note: each of the");
  }

  @Test
  void aSemicolonKeepsTheResultBack() {
    assertThat(run("1 + 1;").result()).isEmpty();
    assertThat(result("1 + 1 // shown")).isEqualTo("2");
  }

  @Test
  void onlyLinesThatDifferFromRankZeroArePrintedAgain() {
    run("System.out.println(\"same\"); System.out.println(\"rank \" + " + RANK + ");");
    assertThat(output.out.toString().lines())
        .containsExactlyInAnyOrder("same", "rank 0", "[1] rank 1", "[2] rank 2");
  }

  @Test
  void nativeOutputIsCapturedToo() {
    run(
        "new ProcessBuilder(\"sh\", \"-c\", \"echo from below; echo complaint >&2\").inheritIO().start().waitFor();");
    assertThat(output.out).hasToString("from below\n");
    assertThat(output.err.toString().lines())
        .containsExactlyInAnyOrder("[0] complaint", "[1] complaint", "[2] complaint");
  }

  @Test
  void twentyThousandLinesOnEveryRankLoseNone() {
    run("for (int i = 0; i < 20_000; i++) System.out.println(" + RANK + " + \":\" + i);");
    var lines = output.out.toString().lines().toList();
    assertThat(lines).hasSize(60_000);
    assertThat(lines.stream().filter(l -> l.startsWith("[2] 2:")).toList())
        .first()
        .isEqualTo("[2] 2:0");
    assertThat(lines.stream().filter(l -> l.startsWith("0:"))).hasSize(20_000);
    assertThat(lines.stream().filter(l -> l.startsWith("[1] 1:"))).hasSize(20_000);
  }

  @Test
  void lateOutputOfACellNeverTurnsUpInALaterOne() throws Exception {
    var first = output;
    run(
        """
        var gate = new java.util.concurrent.CountDownLatch(1);
        var printed = new java.util.concurrent.CountDownLatch(1);
        Thread.startVirtualThread(() -> { try { gate.await(); } catch (InterruptedException e) { return; }
          System.out.println("late"); System.out.flush(); printed.countDown(); });
        """);
    assertThat(first.out).isEmpty();
    output = new Recorded();
    run("gate.countDown(); printed.await();");
    assertThat(first.out.toString() + output.out).isEqualTo("late\n");
  }

  @Test
  void theRootCauseIsNamedWithRankLineAndCauses() {
    run(
        "int broken(int n) {\n  if (n == 1) throw new IllegalStateException(\"boom\", new java.io.IOException(\"disk\"));\n  return n; }");
    int declared = cells;
    var failure = failure("int fine = 1;\nbroken(Integer.parseInt(" + RANK + "));");
    assertThat(failure.cause()).isEqualTo(Cause.EXCEPTION);
    assertThat(failure.name()).isEqualTo("java.lang.IllegalStateException");
    assertThat(failure.message()).isEqualTo("boom");
    assertThat(failure.traceback().getFirst())
        .isEqualTo("rank 1 failed in cell " + cells + ", line 2");
    assertThat(failure.traceback())
        .contains("->   2  broken(Integer.parseInt(" + RANK + "));")
        .contains("IllegalStateException: boom")
        .contains("    at broken, cell " + declared + ", line 2")
        .contains("  caused by java.io.IOException: disk");
  }

  @Test
  void equalFailuresAreFolded() {
    var failure = failure("throw new java.io.IOException(\"no\");");
    assertThat(failure.traceback().getFirst()).startsWith("all 3 ranks failed in cell");
    assertThat(String.join("\n", failure.traceback())).containsOnlyOnce("IOException: no");
  }

  @Test
  void aFailingRankDoesNotLeaveTheOthersHanging() {
    var failure =
        failure(
            "for (int i = 0; ; i++) if (i == 1000 && "
                + RANK
                + ".equals(\"2\")) throw new IllegalStateException(\"early\");");
    assertThat(failure.traceback().getFirst()).startsWith("rank 2 failed");
    assertThat(failure.traceback()).contains("ranks 0, 1 were stopped.");
    assertThat(result("40 + 2")).isEqualTo("42");
  }

  @Test
  void compileErrorsPointAtTheCellsOwnLine() {
    var failure = failure("int ok = 1;\n\nint bad = ok + nothing;");
    assertThat(failure.cause()).isEqualTo(Cause.COMPILE);
    assertThat(failure.message()).endsWith("line 3: error: cannot find symbol");
    assertThat(failure.traceback()).contains("    int bad = ok + nothing;", "                   ^");
  }

  @Test
  void aCellCutOffInTheMiddleRunsNothing() {
    var failure = failure("System.out.println(\"half\");\nvoid f() {");
    assertThat(failure.cause()).isEqualTo(Cause.COMPILE);
    assertThat(output.out).isEmpty();
  }

  @Test
  void anUndeclaredNameIsNamedWhenItIsCalled() {
    run("int early() { return later(); }");
    assertThat(output.err).hasToString("note: not usable until this is declared: method later()\n");
    assertThat(failure("Unheard of;").message()).endsWith("error: cannot find class Unheard");
    var failure = failure("early()");
    assertThat(failure.message()).contains("`early`");
    run("int later() { return 5; }");
    assertThat(result("early()")).isEqualTo("5");
  }

  @Test
  void aCellRunsOnSomeRanksOnly() {
    assertThat(result("%%rank 1,2\n" + RANK)).isEqualTo("[1] 1\n[2] 2");
    assertThat(failure("%%rank 3\n1").message()).contains("ranks are 0..2 but 3");
    assertThat(failure("%%rank one\n1").message()).contains("`one`");
  }

  @Test
  void theFrontHasCellsOfItsOwn() {
    assertThat(result("%%front\nint inFront = 6; System.out.println(\"here\"); inFront * 7"))
        .isEqualTo("42");
    assertThat(output.out).hasToString("here\n");
    assertThat(failure("inFront").cause()).isEqualTo(Cause.COMPILE);
  }

  @Test
  void aFailedFrontCellHasItsExceptionAndLine() {
    var failure = failure("%%front\nint deeper(int n) {\n  return deeper(n + 1);\n}\ndeeper(0);");
    var cell = "cell " + cells;
    assertThat(failure.name()).isEqualTo("java.lang.StackOverflowError");
    // The start of the method and its call alternate on the stack.
    assertThat(failure.traceback().getFirst())
        .matches("the front failed in " + cell + ", line [23]");
    assertThat(failure.traceback())
        .contains("StackOverflowError", "    at deeper, " + cell + ", line 3");
    failure =
        failure("%%front\nint n = 0;\nthrow new Exception(\"outer\", new IOException(\"disk\"));");
    assertThat(failure.name()).isEqualTo("java.lang.Exception");
    assertThat(failure.message()).isEqualTo("outer");
    assertThat(failure.traceback())
        .startsWith("the front failed in cell " + cells + ", line 3")
        .contains("  caused by java.io.IOException: disk");
    failure =
        failure(
            "%%front\nnew Object() {\n  public String toString() { throw new Error(\"no text\"); }\n}");
    assertThat(failure.name()).isEqualTo("java.lang.Error");
    assertThat(failure.message()).isEqualTo("no text");
    assertThat(result("%%front\n6 * 7")).isEqualTo("42");
  }

  @Test
  void aFrontCellIsInterruptedLikeAnyOther() throws Exception {
    for (var endless : new String[] {"while (true) { }", "Thread.sleep(Long.MAX_VALUE);"}) {
      var begun = new CountDownLatch(1);
      var watching = new Recorded();
      watching.onStdout = begun::countDown;
      var source = "%%front\n{ System.out.println(\"begun\");\n" + endless + " }";
      var running = session.begin(new Cell("endless", source), watching);
      begun.await();
      running.interrupt();
      var failure = running.await().failure().orElseThrow();
      assertThat(failure.cause()).isEqualTo(Cause.INTERRUPTED);
      assertThat(failure.traceback()).containsExactly("endless was interrupted, line 3");
      assertThat(result("%%front\n6 * 7")).isEqualTo("42");
    }
  }

  /// Returns the stderr of one rank, in which every line names its rank.
  private String complained() {
    return output.err.toString().replace("[0] ", "");
  }

  /// Closes System.out like `try (var out = new PrintWriter(System.out))`.
  @Test
  void outputAfterSystemOutWasClosedIsShown() {
    run(
        "%%rank 0\nSystem.out.println(\"before\"); System.out.close(); System.out.println(\"after\");");
    run("%%rank 0\nSystem.out.println(\"later\"); System.out.close();");
    assertThat(output.out).hasToString("before\nafter\nlater\n");
    assertThat(complained())
        .isEqualTo(
            "System.out must stay open for later cells but was closed; it was flushed instead\n");
    run("%%rank 0\nSystem.err.close(); System.err.println(\"too\");");
    assertThat(complained()).contains("System.err must stay open").endsWith("too\n");
  }

  @Test
  void streamsThatCellsTookAwayAreGivenBack() {
    assertThat(run("%%rank 0\nSystem.setOut(null);").failure()).isEmpty();
    assertThat(run("%%rank 0\nSystem.setErr(null); System.setIn(null);").failure()).isEmpty();
    var throwing =
        "System.setOut(new PrintStream(System.out) { public void flush() { throw new Error(); } });";
    assertThat(run("%%rank 0\n" + throwing).failure()).isEmpty();
    run("%%rank 0\nSystem.out.println(\"out\"); System.err.println(\"err\");");
    assertThat(output.out).hasToString("out\n");
    assertThat(complained().lines())
        .containsExactly(
            "System.out must be a stream but was set to null; the original is restored",
            "System.err must be a stream but was set to null; the original is restored",
            "System.out must be a stream that can be flushed but that threw java.lang.Error; the"
                + " original is restored",
            "err");
    assertThat(result("6 * 7")).isEqualTo("42");
    output = new Recorded();
    run("%%front\nSystem.setOut(null);");
    run("%%front\nSystem.out.println(\"in front\"); System.out.close();");
    run("%%front\nSystem.out.println(\"again\");");
    assertThat(output.out).hasToString("in front\nagain\n");
    assertThat(output.err)
        .hasToString("System.out must be a stream but was set to null; the original is restored\n");
  }

  /// A cell may capture what later cells print.
  @Test
  void aStreamThatACellSetStaysForLaterCells() {
    run("var usual = System.out; var kept = new ByteArrayOutputStream();");
    run("System.setOut(new PrintStream(kept));");
    run("System.out.print(\"captured\");");
    assertThat(result("System.setOut(usual);\nkept.toString()")).isEqualTo("captured");
    assertThat(output.out).isEmpty();
  }

  @Test
  void unknownMagicsNameTheKnownOnes() {
    assertThat(failure("%nope").message()).contains("%nope").contains("%ranks");
    assertThat(failure("%%nope").message()).contains("%%rank");
    assertThat(failure("%jars /no/such.jar").message()).contains("/no/such.jar");
  }

  @Test
  void aModuloAtTheStartOfALineIsNoMagic() {
    assertThat(result("int sum = 17\n  % 5;\nsum")).isEqualTo("2");
  }

  @Test
  void ranksAreListed() {
    assertThat(result("%ranks").lines()).hasSize(5).last().isEqualTo("backend host (set in code)");
  }

  @Test
  void rankZeroReadsALineFromTheUser() {
    output.input = "typed";
    run("%%rank 0\nvar typed = new java.util.Scanner(System.in).nextLine();");
    assertThat(result("%%rank 0\ntyped")).isEqualTo("typed");
  }

  @Test
  void kernelTrap4_anEndlessLoopAndASleepAreInterrupted() throws Exception {
    for (var endless :
        new String[] {
          "while (true) { }", "Thread.sleep(Long.MAX_VALUE);", "Thread.sleep(10); while (true) { }"
        }) {
      var started = new CountDownLatch(1);
      var watching = new Recorded();
      watching.onStdout = started::countDown;
      var running =
          session.begin(
              new Cell("endless", "{ System.out.println(\"begun\");\n" + endless + " }"), watching);
      started.await();
      running.interrupt();
      assertThat(running.await().failure().orElseThrow().cause()).isEqualTo(Cause.INTERRUPTED);
      assertThat(result("6 * 7")).isEqualTo("42");
    }
  }

  @Test
  void kernelTrap10_causesKeepTheirClassAndMessage() {
    var failure =
        failure(
            "throw new IllegalStateException(new java.util.NoSuchElementException(\"inner\"));");
    assertThat(failure.name()).isEqualTo("java.lang.IllegalStateException");
    assertThat(failure.traceback()).contains("  caused by java.util.NoSuchElementException: inner");
  }

  @Test
  void anEditorsQuestionsAreAnswered() {
    run("var quantity = new java.util.ArrayList<String>();");
    assertThat(session.assistant().complete("quantity.addA", 13).replacements())
        .contains("addAll(");
    assertThat(session.assistant().complete("%ra", 3).replacements()).contains("%ranks");
    assertThat(session.assistant().inspect("Math.max(1, 2)", 8, 0).orElseThrow().text())
        .contains("max");
    assertThat(session.assistant().completeness("int f() {").status()).isEqualTo(Status.INCOMPLETE);
    assertThat(session.assistant().completeness("int f() {").indent()).isNotEmpty();
    assertThat(session.assistant().completeness("1 + 1").status()).isEqualTo(Status.COMPLETE);
    assertThat(session.assistant().completeness(")").status()).isEqualTo(Status.INVALID);
  }
}
