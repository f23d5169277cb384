package braid.launcher.notebook.parameters;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ParametersTest {
  private static final String CELL =
      """
      %help
      import java.nio.file.Path;
      // the problem
      final int m = 8192, n = 28672;
      static long bytes = 1L << 33;
      double ratio = 0.5;
      float small = 1f;
      boolean verify = true;
      String link = "2GB/s";
      int[] splits = {1, 2};
      String[] methods = {"direct"};
      int[][] grid = {{1}};
      List<Integer> streams = List.of(1);
      List<String> words;
      java.util.Map<String, Double> sizes = Map.of();
      Map<String, Object> anything = new HashMap<>();
      Object object = null;
      Integer boxed = null;
      Path path = Path.of("x");
      var k = 1024 * 8;
      var d = -1.5;
      var text = "t";
      var list = List.of(1, 2);
      var mixed = List.of(1, "a");
      var array = new long[] {1};
      var map = Map.of("a", 1);
      var spec = GemmSpec.allGatherGemm(1, 2, 3);
      int last = 1""";

  @TempDir Path directory;

  private static Injection inject(@Nullable String cell, Consumer<Parameters.Builder> change) {
    var given = Parameters.given();
    change.accept(given);
    return Injection.of(given.build(), cell, "n.ipynb");
  }

  private static String line(Injection injection) {
    return injection.source().lines().skip(1).collect(Collectors.joining("\n"));
  }

  @Test
  void parametersHaveTheTypesThatTheCellDeclares() {
    assertThat(
            Declarations.of(CELL).entrySet().stream()
                .map(e -> e.getValue().source() + " " + e.getKey()))
        .containsExactly(
            "int m",
            "int n",
            "long bytes",
            "double ratio",
            "float small",
            "boolean verify",
            "String link",
            "int[] splits",
            "String[] methods",
            "int[][] grid",
            "List<Integer> streams",
            "List<String> words",
            "Map<String, Double> sizes",
            "Map<String, Object> anything",
            "Object object",
            "Integer boxed",
            "Path path",
            "int k",
            "double d",
            "String text",
            "List<Integer> list",
            "List<Object> mixed",
            "long[] array",
            "Map<String, Integer> map",
            "var spec",
            "int last");
  }

  /// The type of a `var` is the compiler's, and a mistake elsewhere in the cell changes none.
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "var v = 1 < 2;|boolean",
        "var v = Math.max(1, 2L);|long",
        "var v = 1 << 3L;|int",
        "var v = (double) 1;|double",
        "var v = \"a\" + 1;|String",
        "var v = true ? 1 : 2.5;|double",
        "var v = List.of(List.of(1));|List<List<Integer>>",
        "var v = Map.of(\"a\", 1, \"b\", \"c\");|Map<String, Object>",
        "Map<Integer, Integer> v = null;|Map<Integer, Integer>",
        "List<Path> v;|List<Path>",
        "List v;|List<Object>",
        "char v = 'a';|char",
        "Path[] v;|Path[]",
        "int v = 1; int w = ;|int",
        "int w = ; long v = 1;|long",
        "int v = \"text\";|int",
        "GemmSpec s = null; for (var v : s) {} float v = 1;|float",
        "class A { long v; } int v = 1; Runnable r = () -> { long v = 1; };|int",
        "double ratio(int x) { return x; } int v = 1;|int",
        "enum E { A } record R(int v) {} int v = 1;|int",
      })
  void parametersHaveTheTypesOfTheCompiler(String cell, String type) {
    assertThat(Declarations.of(cell))
        .hasEntrySatisfying("v", v -> assertThat(v.source()).isEqualTo(type));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "m=4096|int m = 4096;",
        "m=-1|int m = -1;",
        "bytes=4|long bytes = 4L;",
        "bytes=8589934592|long bytes = 8589934592L;",
        "ratio=2|double ratio = 2.0;",
        "ratio=1e-3|double ratio = 0.001;",
        "m=0x1F|int m = 31;",
        "m=0o17|int m = 15;",
        "ratio=.inf|double ratio = Double.POSITIVE_INFINITY;",
        "ratio=-.inf|double ratio = Double.NEGATIVE_INFINITY;",
        "ratio=.nan|double ratio = Double.NaN;",
        "ratio=0e-999|double ratio = 0.0;",
        "small=.nan|float small = Float.NaN;",
        "small=.inf|float small = Float.POSITIVE_INFINITY;",
        "small=3.4028235e38|float small = 3.4028235E38f;",
        "small=1.4e-45|float small = 1.4E-45f;",
        "small=0|float small = 0.0f;",
        "small=9223372036854775807|float small = 9.223372E18f;",
        "small=0.25|float small = 0.25f;",
        "verify=false|boolean verify = false;",
        "link=4|String link = \"4\";",
        "link=|String link = \"\";",
        "link=a=b,\"c\"\\n|String link = \"a=b,\\\"c\\\"\\\\n\";",
        "splits=1,2,4|int[] splits = new int[] {1, 2, 4};",
        "splits=[1, 2, 4]|int[] splits = new int[] {1, 2, 4};",
        "splits=8|int[] splits = new int[] {8};",
        "splits=|int[] splits = new int[] {};",
        "methods=direct, 2|String[] methods = new String[] {\"direct\", \"2\"};",
        "grid=[[1, 2], []]|int[][] grid = new int[][] {new int[] {1, 2}, new int[] {}};",
        "streams=1,2|List<Integer> streams = java.util.List.of(1, 2);",
        "streams=[1, null]|List<Integer> streams = java.util.Arrays.asList(1, null);",
        "streams=[null]|List<Integer> streams = java.util.Collections.singletonList(null);",
        "sizes={b: 1, a: 2.5}|Map<String, Double> sizes = new"
            + " java.util.TreeMap<>(java.util.Map.ofEntries(java.util.Map.entry(\"a\", 2.5),"
            + " java.util.Map.entry(\"b\", 1.0)));",
        "boxed=null|Integer boxed = null;",
        "k=4|int k = 4;",
        "list=3|List<Integer> list = java.util.List.of(3);",
        "object=true|Object object = true;",
      })
  void aValueIsWrittenAsTheDeclaredType(String assignment, String line) {
    assertThat(line(inject(CELL, given -> given.typed(assignment)))).isEqualTo(line);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "x=4|var x = 4;",
        "x=9000000000|var x = 9000000000L;",
        "x=4.5|var x = 4.5;",
        "x=true|var x = true;",
        "x=no|var x = \"no\";",
        "x=2GB/s|var x = \"2GB/s\";",
        "x=null|Object x = null;",
        "x=[1, a]|var x = java.util.List.of(1, \"a\");",
      })
  void anUndeclaredParameterHasTheTypeOfItsValue(String assignment, String line) {
    assertThat(line(inject(null, given -> given.typed(assignment)))).isEqualTo(line);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "m=x|parameter m is declared int but was \"x\" (-p); try -p m=4",
        "m=4.0|parameter m is declared int but was \"4.0\" (-p); try -p m=4",
        "m=9000000000|parameter m is declared int but was \"9000000000\" (-p); try -p m=4",
        "m=99999999999999999999|parameter m is declared int but was \"99999999999999999999\" (-p); try"
            + " -p m=4",
        "bytes=9223372036854775808|parameter bytes is declared long but was \"9223372036854775808\""
            + " (-p); try -p bytes=4",
        "bytes=1e3|parameter bytes is declared long but was \"1e3\" (-p); try -p bytes=4",
        "small=1e39|parameter small is declared float (1.4E-45 to 3.4028235E38) but was \"1e39\" (-p);"
            + " try -p small=0.5",
        "small=-3.5e38|parameter small is declared float (1.4E-45 to 3.4028235E38) but was"
            + " \"-3.5e38\" (-p); try -p small=0.5",
        "small=1e-46|parameter small is declared float (1.4E-45 to 3.4028235E38) but was \"1e-46\""
            + " (-p); try -p small=0.5",
        "small=1e400|parameter small is declared float (1.4E-45 to 3.4028235E38) but was \"1e400\""
            + " (-p); try -p small=0.5",
        "small=NaN|parameter small is declared float but was \"NaN\" (-p); try -p small=0.5",
        "ratio=1e400|parameter ratio is declared double (4.9E-324 to 1.7976931348623157E308) but was"
            + " \"1e400\" (-p); try -p ratio=0.5",
        "ratio=1e-999999999999|parameter ratio is declared double (4.9E-324 to"
            + " 1.7976931348623157E308) but was \"1e-999999999999\" (-p); try -p ratio=0.5",
        "sizes={a: 1e400}|parameter sizes is declared Map<String, Double> but was \"{a: 1e400}\" (-p);"
            + " try -p sizes={a: 0.5}",
        "object=1e400|parameter object must be int, long, float, double, boolean, String, List, Map"
            + " and arrays of them but was \"1e400\" (-p); try -p object=4",
        "m=null|parameter m is declared int but was \"null\" (-p); try -p m=4",
        "verify=1|parameter verify is declared boolean but was \"1\" (-p); try -p verify=true",
        "splits=a,b|parameter splits is declared int[] but was \"a,b\" (-p); try -p splits=1,2,4",
        "splits=[1|parameter splits: value must be a list or map as YAML has it but was \"[1\" (line"
            + " 1 column 3: expected ',' or ']', but got <stream end>); try [1, 2, 4]",
        "sizes=[1]|parameter sizes is declared Map<String, Double> but was \"[1]\" (-p); try -p"
            + " sizes={a: 0.5}",
        "path=x|parameter path must be of a type that can be given (int, long, float, double,"
            + " boolean, String, List, Map and arrays of them) but is declared Path; declare one of"
            + " those",
        "spec=x|parameter spec must be of a type that can be given (int, long, float, double,"
            + " boolean, String, List, Map and arrays of them) but is declared var; declare one of"
            + " those",
        "splitz=1|parameter splitz (-p) must be declared in the cell of n.ipynb tagged parameters,"
            + " but it declares m, n, bytes, ratio, small, verify, link, splits, methods, grid,"
            + " streams, words, sizes, anything, object, boxed, path, k, d, text, list, mixed,"
            + " array, map, spec, last; did you mean splits?",
      })
  void aWrongValueIsExplained(String assignment, String message) {
    assertThatThrownBy(() -> inject(CELL, given -> given.typed(assignment)))
        .isInstanceOf(BraidException.class)
        .hasMessage(message);
  }

  @Test
  void anyNameIsRefusedIfTheCellDeclaresNone() {
    assertThatThrownBy(() -> inject("// nothing yet", given -> given.typed("m=1")))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "parameter m (-p) must be declared in the cell of n.ipynb tagged parameters, but it"
                + " declares none; declare it there");
  }

  @Test
  void rawIsTextAndNothingElse() {
    assertThat(line(inject(CELL, given -> given.raw("link=[1]"))))
        .isEqualTo("String link = \"[1]\";");
    assertThatThrownBy(() -> inject(CELL, given -> given.raw("m=4")))
        .isInstanceOf(BraidException.class)
        .hasMessage("parameter m is declared int but was \"4\" (-r); try -p m=4");
  }

  @Test
  void laterWaysOfGivingOverrideEarlierOnes() throws IOException {
    var file =
        Files.writeString(
            directory.resolve("p.yaml"), "m: 1\nn: 1\nk: 1\nlink: off\nratio: 1e-3\n");
    var injection =
        inject(CELL, given -> given.raw("link=raw").typed("k=3").yaml("{n: 2, k: 2}").file(file));
    assertThat(injection.values())
        .isEqualTo(Map.of("m", 1, "n", 2, "k", 3, "link", "raw", "ratio", 1e-3));
  }

  /// As `-f <(…)` gives.
  @Test
  void aPipeIsReadAndAnEndlessFileIsRefused() throws Exception {
    var fifo = directory.resolve("fifo");
    assertThat(new ProcessBuilder("mkfifo", fifo.toString()).start().waitFor()).isZero();
    var writer =
        Thread.ofVirtual()
            .start(
                () -> {
                  try {
                    Files.writeString(fifo, "m: 7");
                  } catch (IOException e) {
                    throw new UncheckedIOException(e);
                  }
                });
    assertThat(line(inject(CELL, given -> given.file(fifo)))).isEqualTo("int m = 7;");
    writer.join();
    assertThatThrownBy(() -> Parameters.given().file(Path.of("/dev/zero")))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "-f must name a YAML file but /dev/zero is a device or a socket; check the path");
    var endless = new ProcessBuilder("sh", "-c", "exec cat /dev/zero > " + fifo).start();
    assertThatThrownBy(() -> Parameters.given().file(fifo))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "-f must name a YAML file but " + fifo + " has more than 16 MiB; check the path");
    endless.destroy();
  }

  @Test
  void jsonFilesAreReadToo() throws IOException {
    var file = Files.writeString(directory.resolve("p.json"), "{\"splits\": [1, 2]}");
    assertThat(line(inject(CELL, given -> given.file(file))))
        .isEqualTo("int[] splits = new int[] {1, 2};");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{m: 3.5}|parameter m is declared int but was 3.5 (-y); try m: 4",
        "{splits: 3}|parameter splits is declared int[] but was 3 (-y); try splits: [1, 2, 4]",
        "{link: 3}|parameter link is declared String but was 3 (-y); quote it",
        "[1]|-y must map names to values but holds [1]; write NAME: VALUE",
        "{a: [}|-y must be YAML but is not: line 1 column 6: expected the node content, but found"
            + " '}'; write NAME: VALUE lines",
        "{m: 1, m: 2}|-y must be YAML but is not: line 1 column 8: found duplicate key m; write"
            + " NAME: VALUE lines",
        "{m: !!java.io.File [x]}|-y must be YAML but is not: line 1 column 5: could not determine a"
            + " constructor for the tag tag:yaml.org,2002:java.io.File; write NAME: VALUE lines",
        "{a-b: 1}|parameter must be a Java name but was \"a-b\" (-y); use letters, digits and _",
      })
  void aMistakeInYamlIsExplained(String yaml, String message) {
    assertThatThrownBy(() -> inject(CELL, given -> given.yaml(yaml)))
        .isInstanceOf(BraidException.class)
        .hasMessage(message);
  }

  @Test
  void mistakesAreRefusedAtTheCall() {
    var given = Parameters.given().typed("m=1");
    assertThatThrownBy(() -> given.typed("m=2"))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "parameter m must be given once by -p but was given as \"1\" and as \"2\"; drop one");
    assertThatThrownBy(() -> given.typed("m"))
        .isInstanceOf(BraidException.class)
        .hasMessage("-p must be NAME=VALUE but was \"m\"; try -p m=VALUE");
    assertThatThrownBy(() -> given.raw("=1"))
        .isInstanceOf(BraidException.class)
        .hasMessage("-r must be NAME=VALUE but was \"=1\"; try -r NAME=VALUE");
    assertThatThrownBy(() -> given.typed("int=1"))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "parameter must be a Java name but was \"int\" (-p); use letters, digits and _");
    var missing = directory.resolve("none.yaml");
    assertThatThrownBy(() -> given.file(missing))
        .isInstanceOf(BraidException.class)
        .hasMessage("-f must name a YAML file but " + missing + " does not exist; check the path");
  }
}
