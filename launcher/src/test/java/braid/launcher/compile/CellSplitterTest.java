package braid.launcher.compile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import braid.launcher.cell.Cell;
import braid.launcher.compile.CellCompiler.Piece;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import jdk.jshell.SourceCodeAnalysis.Completeness;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;
import jdk.jshell.execution.LocalExecutionControl;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CellSplitterTest {
  private static final CellCompiler COMPILER = new CellCompiler(new LocalExecutionControl());

  private static final List<String> FORMS =
      List.of(
          "int a = 1;",
          "var b = List.of(1, 2)",
          "int[] c = {1, 2}, d[] = {{3}, {4}};",
          "import java.util.*;",
          "import static java.lang.Math.max",
          "a + 1",
          "a++;",
          "b.size();",
          "if (a > 0) { a--; } else if (a < 0) a++; else { a = 0; }",
          "if (a > 0)\n  a--;",
          "for (int i = 0; i < 3; i++) { a += i; }",
          "for (var x : b) System.out.println(x);",
          "while (a > 0) a--;",
          "do { a++; } while (a < 3);",
          "try { a++; } catch (RuntimeException e) { a--; } finally { a = 0; }",
          "try (var in = new java.io.StringReader(\"\")) { a++; }",
          "switch (a) { case 1: a = 2; break; default: a = 3; }",
          "int e = switch (a) { case 1 -> { yield 2; } default -> 3; };",
          "synchronized (b) { a++; }",
          "{ int local = 1; a = local; }",
          ";",
          "label: for (;;) { break label; }",
          "throw new Error(\"};\");",
          "int f(int x) { return x + 1; }",
          "<T> T g(T t) { return t; }",
          "class P { int x; P() { x = 1; } }",
          "record R(int x, String y) { R { x = 2; } }",
          "enum E { A, B { int z; }; int w; }",
          "interface I { default int h() { return 1; } }",
          "@interface Note { int value() default 1; }",
          "@Deprecated public static final int g = 1;",
          "String s = \"a;b}\\\"{\";",
          "char q = '\\'', r = '\"', t = ';';",
          "String u = \"\"\"\n    a; } \"quoted\" \\\"\"\"\n    // none\n    % none\n    \"\"\";",
          "// a comment; with } and \" and '",
          "/* one; } more\n \" */",
          "/** doc */ int v = 1; // after;",
          "Runnable w = () -> { a++; };",
          "new Object() { public String toString() { return \";\"; } }.toString()",
          "a = b\n  .size()\n  ;",
          "%ranks",
          "%time a++;",
          "int x1 = 1; int x2 = 2; x1 + x2",
          "List<Map<String, int[]>> y = new ArrayList<>();",
          "a < 1",
          "(a) + 1",
          "a % 2",
          "// last",
          "",
          "   ");

  /// Sources that are an incomplete snippet or none.
  private static final List<String> BROKEN =
      List.of(
          "int a = (1;",
          "foo(",
          "}",
          ")",
          "\"open",
          "'",
          "\"\"\" open",
          "/* open",
          "int int;",
          "else { }",
          "case 1:",
          "#",
          "%5",
          "a %\n% 2",
          "class {",
          "try { }",
          "\\u0041",
          "@",
          "if (a)",
          "do { }");

  @AfterAll
  static void close() {
    COMPILER.close();
  }

  private static CompletionInfo analyse(String source) {
    return COMPILER.analysis().analyzeCompletion(source);
  }

  private static List<Piece> split(String source) throws CompileError {
    return new CellSplitter(new Cell("cell", source), CellSplitterTest::analyse).pieces();
  }

  /// Splits by the plain method, in which JShell reads the whole rest for every snippet.
  private static List<Piece> plain(String source) throws CompileError {
    var pieces = new ArrayList<Piece>();
    int index = 0;
    while (true) {
      while (index < source.length() && Character.isWhitespace(source.charAt(index))) {
        index++;
      }
      if (index == source.length()) {
        return pieces;
      }
      int line = 1 + (int) source.substring(0, index).chars().filter(c -> c == '\n').count();
      if (source.charAt(index) == '%') {
        int end = source.indexOf('\n', index);
        end = end < 0 ? source.length() : end;
        pieces.add(new Piece.Magic(source.substring(index, end).strip(), line));
        index = end;
        continue;
      }
      var magic = Pattern.compile("\n%[\\p{L}%]").matcher(source);
      int limit = magic.find(index) ? magic.start() + 1 : source.length();
      var rest = source.substring(index, limit);
      var info = analyse(rest);
      if (info.completeness() == Completeness.EMPTY) {
        index = limit;
        continue;
      }
      if (info.completeness() == Completeness.DEFINITELY_INCOMPLETE
          || info.completeness() == Completeness.CONSIDERED_INCOMPLETE) {
        throw CompileError.incomplete(new Cell("cell", source), line, rest);
      }
      boolean unknown = info.completeness() == Completeness.UNKNOWN;
      int length = unknown ? rest.length() : rest.length() - info.remaining().length();
      var after = source.substring(index + length);
      boolean last = after.isBlank() || analyse(after).completeness() == Completeness.EMPTY;
      var shown = last && !rest.substring(0, length).strip().endsWith(";");
      pieces.add(new Piece.Java(unknown ? rest : info.source(), line, shown));
      index += length;
    }
  }

  @Test
  void anyCellIsSplitAsByJShell() throws CompileError {
    long seed = Long.getLong("braid.seed", 20_261_122);
    var random = new Random(seed);
    for (int n = 0; n < 1_500; n++) {
      var source =
          IntStream.range(0, 1 + random.nextInt(8))
              .mapToObj(i -> FORMS.get(random.nextInt(FORMS.size())))
              .map(form -> form + List.of("\n", "\n\n", " ", ";\n").get(random.nextInt(4)))
              .collect(Collectors.joining());
      assertSame(source, seed);
    }
  }

  @Test
  void aBrokenCellIsSplitAsByJShellUntilItBreaks() throws CompileError {
    long seed = Long.getLong("braid.seed", 20_261_122);
    var random = new Random(seed);
    for (int n = 0; n < 1_500; n++) {
      var parts =
          IntStream.range(0, 1 + random.nextInt(6))
              .mapToObj(i -> FORMS.get(random.nextInt(FORMS.size())))
              .collect(Collectors.toCollection(ArrayList::new));
      parts.add(random.nextInt(parts.size() + 1), BROKEN.get(random.nextInt(BROKEN.size())));
      assertSameUpToWhereItIsBroken(String.join(random.nextBoolean() ? "\n" : " ", parts), seed);
    }
  }

  private static void assertSame(String source, long seed) throws CompileError {
    assertThat(split(source)).as("seed %d: %s", seed, source).isEqualTo(plain(source));
  }

  /// Compares up to the mistake. The plain method also finds a comment left open in any later
  /// snippet or in the arguments of a magic and then reports the first snippet as incomplete. A
  /// character illegal in Java also spoils the snippet before it where JShell looks two tokens
  /// ahead.
  private static void assertSameUpToWhereItIsBroken(String source, long seed) throws CompileError {
    List<Piece> expected;
    try {
      expected = plain(source);
    } catch (CompileError e) {
      assertThat(e).hasMessageContaining("incomplete code");
      assertIncomplete(source, seed);
      return;
    }
    var pieces = split(source);
    int whole = Math.max(0, expected.size() - 1);
    assertThat(pieces).as("seed %d: %s", seed, source).hasSizeGreaterThanOrEqualTo(expected.size());
    assertThat(pieces.subList(0, whole))
        .as("seed %d: %s", seed, source)
        .isEqualTo(expected.subList(0, whole));
    if (pieces.size() == expected.size()) {
      assertThat(pieces).as("seed %d: %s", seed, source).isEqualTo(expected);
    } else {
      assertThat(source).as("seed %d: %s", seed, source).containsAnyOf("#", "\"open", "'", "\\u");
      assertThat(((Piece.Java) expected.getLast()).source())
          .as("seed %d: %s", seed, source)
          .endsWith(((Piece.Java) pieces.getLast()).source());
    }
  }

  private static void assertIncomplete(String source, long seed) {
    try {
      assertThat(split(source))
          .as("seed %d: %s: incomplete code", seed, source)
          .anyMatch(piece -> piece instanceof Piece.Magic(var text, _) && opens(text));
    } catch (CompileError e) {
      assertThat(e).as("seed %d: %s", seed, source).hasMessageContaining("incomplete code");
    }
  }

  private static boolean opens(String text) {
    return text.contains("/*") || text.contains("\"\"\"");
  }

  @Test
  void anErrorNamesTheLineOfTheUnfinishedSnippet() {
    assertThat(catchThrowable(() -> split("int a = 1;\na++; /* b")))
        .hasMessageStartingWith("cell, line 2: incomplete code");
  }

  /// Checks how many characters JShell reads per character of a cell, whatever its length.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "x++;\n",
        "x++; ",
        "if (x > 0) { x--; } else { x++; }\n",
        "int f(int a) { int b = a; return b; }\n",
        "// a comment\nString s = \"\"\"\n  ;}\n  \"\"\";\n",
        "x++;\n%ranks\n",
        "x++; %5\n",
        "\n\n\n/* ; */",
        ";",
      })
  void eachPartOfALongCellIsReadAFewTimes(String part) throws CompileError {
    int[] read = new int[1];
    var source = "int x = 0;\n" + part.repeat(3_000) + "x";
    var pieces =
        new CellSplitter(
                new Cell("cell", source),
                rest -> {
                  read[0] += rest.length();
                  return analyse(rest);
                })
            .pieces();
    assertThat(pieces).hasSizeGreaterThanOrEqualTo(2);
    assertThat(pieces.getLast()).isInstanceOf(Piece.Java.class);
    assertThat(read[0]).isLessThan(8 * source.length());
  }

  @Test
  void aLongSnippetIsReadAFewTimes() throws CompileError {
    int[] read = new int[1];
    var chain = "if (x == 0) { x = 1; }" + " else if (x > 0) { x--; }".repeat(500);
    var source =
        "int x = 0;\n" + chain + "\nclass A { " + "int f() { return 1; } ".repeat(500) + "}";
    var pieces =
        new CellSplitter(
                new Cell("cell", source),
                rest -> {
                  read[0] += rest.length();
                  return analyse(rest);
                })
            .pieces();
    assertThat(pieces).hasSize(3);
    assertThat(read[0]).isLessThan(8 * source.length());
  }
}
