package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.BackendKind;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import braid.model.Method;
import braid.model.Transport;
import braid.selftest.SelfTestRecord;
import braid.selftest.TestedPath;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// docs/capabilities.md is generated: its grids from [Capabilities] and the API, its column of
/// tests from the test methods that are named after a row, its column of runs from the self-tests
/// in docs/results/gpu. What a row is about, its paths and its note are written on the page, and
/// every path that the page claims on GPUs has a case in the self-test. The test writes the page as
/// it should be to `target/capabilities.md`; to regenerate it, run the test and copy it from there.
class CapabilitiesPageTest {
  private static final Path PAGE = Path.of("../docs/capabilities.md");
  private static final Path CLASSES = Path.of("target/test-classes");
  private static final Pattern NAMED_AFTER_A_ROW = Pattern.compile("([a-g])(\\d+)[A-Z]\\w*");
  private static final Pattern LISTED = Pattern.compile("`(\\w+Test)\\.([a-g]\\d+[A-Z]\\w*)`");
  private static final Pattern ROW = Pattern.compile("(?m)^\\| ([A-G]\\d+) \\|.*$");
  private static final Pattern CELLS =
      Pattern.compile(
          "(?m)^\\| ([A-G]\\d+) \\| ([^|]*) \\| [^|]* \\| ([^|]*) \\| [^|]* \\| ?([^|]*?) ?\\|$");
  private static final Pattern PATH = Pattern.compile("`([^`]+)`");
  private static final Pattern GRID =
      Pattern.compile("(?s)(<!-- generated: (\\w+) -->\n).*?(<!-- end -->)");
  private static final Path RECORDS = Path.of("../docs/results/gpu");
  private static final long MOST_RECORD_BYTES = 100 << 10;

  /// Name of a grid's column that adds nothing to the path of a row.
  private static final String MEMORY = "memory";

  /// Cell of a row that claims nothing on GPUs.
  private static final String NONE = "–";

  /// Ranks that allow every path; two levels need several groups of several ranks.
  private static final int RANKS = 4;

  private static final Path REGENERATED = Path.of("target/capabilities.md");

  @Test
  void thePageIsAsGenerated() throws Exception {
    var page = Files.readString(PAGE);
    var generated = generated(page, records());
    Files.writeString(REGENERATED, generated);
    assertThat(CELLS.matcher(page).results()).hasSameSizeAs(rows());
    assertThat(GRID.matcher(page).results().map(grid -> grid.group(2)))
        .containsExactly("pipelines", "libraries", "collectives", "attention", "others");
    assertThat(page).as("%s, regenerated as %s", PAGE, REGENERATED).isEqualTo(generated);
  }

  private static String generated(String page, List<SelfTestRecord> records) throws Exception {
    var tests = tests();
    var withTests = CELLS.matcher(page).replaceAll(row -> quote(row(row, tests, records)));
    return GRID.matcher(withTests)
        .replaceAll(grid -> quote(grid.group(1) + grid(grid.group(2), records) + grid.group(3)));
  }

  /// Returns the self-tests on GPUs that are kept.
  private static List<SelfTestRecord> records() throws IOException {
    var records = new ArrayList<SelfTestRecord>();
    try (var files = Files.newDirectoryStream(RECORDS, "selftest_*.json")) {
      for (var file : files) {
        assertThat(Files.size(file)).as(file.toString()).isLessThan(MOST_RECORD_BYTES);
        records.add(SelfTestRecord.parse(Files.readString(file)));
      }
    }
    return records;
  }

  private static String quote(String text) {
    return Matcher.quoteReplacement(text);
  }

  private static String row(MatchResult row, Set<String> tests, List<SelfTestRecord> records) {
    var prefix = row.group(1).toLowerCase(Locale.ROOT);
    var own =
        tests.stream()
            .filter(test -> test.matches("\\w+\\." + prefix + "[A-Z].*"))
            .map(test -> "`" + test + "`")
            .collect(Collectors.joining("<br>"));
    var paths = paths(row.group(3));
    return "| %s | %s | %s | %s | %s | %s |"
        .formatted(
            row.group(1),
            row.group(2),
            own,
            row.group(3),
            paths.isEmpty() ? NONE : SelfTestRecord.lastRun(records, paths),
            row.group(4));
  }

  private static List<TestedPath> paths(String cell) {
    return PATH.matcher(cell).results().map(path -> TestedPath.parse(path.group(1))).toList();
  }

  private static String grid(String name, List<SelfTestRecord> records) {
    return switch (name) {
      case "pipelines" -> pipelines(records);
      case "libraries" -> libraries(records);
      case "collectives" -> collectives(records);
      case "attention" -> attention(records);
      case "others" -> others(records);
      default -> throw new AssertionError(name);
    };
  }

  private static String pipelines(List<SelfTestRecord> records) {
    return table(
        records,
        "pattern",
        Arrays.asList(GemmSpec.Pattern.values()),
        Arrays.asList(Method.values()),
        (backend, pattern, method) ->
            Capabilities.of(backend).stream()
                .filter(row -> row.pattern() == pattern && row.method() == method)
                .filter(row -> !row.transport().isLibrary())
                .collect(
                    Collectors.groupingBy(
                        Capabilities.Row::kind, TreeMap::new, Collectors.toList()))
                .entrySet()
                .stream()
                .filter(kind -> kind.getValue().stream().allMatch(Capabilities.Row::supported))
                .map(Map.Entry::getKey));
  }

  /// Libraries have fewer methods, all in the same kinds of memory.
  private static String libraries(List<SelfTestRecord> records) {
    return table(
        records,
        "pattern",
        Arrays.asList(GemmSpec.Pattern.values()),
        Arrays.stream(Transport.values()).filter(Transport::isLibrary).toList(),
        (backend, pattern, transport) ->
            Capabilities.of(backend).stream()
                .filter(row -> row.pattern() == pattern && row.transport() == transport)
                .filter(Capabilities.Row::supported)
                .map(Capabilities.Row::kind)
                .distinct());
  }

  private static String collectives(List<SelfTestRecord> records) {
    return table(
        records,
        "collective",
        Arrays.asList(Collective.values()),
        Arrays.asList(CollectiveWay.values()),
        (backend, collective, way) ->
            Capabilities.collectivesOf(backend).stream()
                .filter(
                    row -> row.collective() == collective && row.way() == way && row.supported())
                .map(Capabilities.CollectiveRow::kind));
  }

  /// Attention has no gaps: each method computes each result in each kind of memory.
  private static String attention(List<SelfTestRecord> records) {
    var results =
        Stream.of("", "packed-")
            .flatMap(
                packed ->
                    Stream.of("attention", "attention-backward", "attention-deterministic-backward")
                        .map(packed::concat))
            .toList();
    var methods =
        Arrays.stream(ContextParallel.Method.values())
            .flatMap(
                method ->
                    method == ContextParallel.Method.RING
                        ? Stream.of(method.toString(), method + "-exchange")
                        : Stream.of(method.toString()))
            .toList();
    return table(records, "result", results, methods, (backend, _, _) -> everywhere(backend));
  }

  private static String others(List<SelfTestRecord> records) {
    var paths = new ArrayList<String>();
    for (var tensors : List.of("bound-local-tensors", "bound-symmetric-tensors")) {
      for (var pattern : GemmSpec.Pattern.values()) {
        paths.add(tensors + ": " + pattern);
      }
    }
    paths.addAll(
        List.of(
            "chain: pipelines",
            "chain: attention",
            "chain: fused",
            "own-schedule: chunked-all-gather",
            "own-schedule: two-level-all-gather",
            "own-schedule: reduce-scatter",
            "symmetric tensor"));
    return table(records, "path", paths, List.of(MEMORY), (backend, _, _) -> everywhere(backend));
  }

  private static Stream<MemoryKind> everywhere(BackendKind backend) {
    return backend == BackendKind.HOST
        ? Stream.of(MemoryKind.NATIVE)
        : Capabilities.kinds().stream();
  }

  /// The kinds of memory in which a backend can do it.
  private interface Supported<R, C> {
    Stream<MemoryKind> by(BackendKind backend, R row, C column);
  }

  private static <R, C> String table(
      List<SelfTestRecord> records,
      String corner,
      List<R> rows,
      List<C> columns,
      Supported<R, C> supported) {
    var table = new StringBuilder("| " + corner + " |");
    columns.forEach(column -> table.append(" %s |".formatted(column)));
    table.append(" last run on GPUs |\n|---|").append("---|".repeat(columns.size() + 1));
    table.append('\n');
    for (var row : rows) {
      table.append("| %s |".formatted(row));
      var paths = new ArrayList<TestedPath>();
      for (var column : columns) {
        var host = joined(supported.by(BackendKind.HOST, row, column));
        var cuda = joined(supported.by(BackendKind.CUDA, row, column));
        supported
            .by(BackendKind.CUDA, row, column)
            .forEach(kind -> paths.add(path(row.toString(), column.toString(), kind)));
        table.append(
            host.equals(cuda) ? " %s |".formatted(host) : " %s / %s |".formatted(host, cuda));
      }
      table.append(" %s |\n".formatted(SelfTestRecord.lastRun(records, paths)));
    }
    return table.toString();
  }

  private static TestedPath path(String row, String column, MemoryKind kind) {
    return TestedPath.parse(
        column.equals(MEMORY) ? row + ": " + kind : row + ": " + column + ": " + kind);
  }

  private static String joined(Stream<MemoryKind> kinds) {
    var all = kinds.map(MemoryKind::toString).toList();
    return all.isEmpty()
        ? "–"
        : all.size() == Capabilities.kinds().size() ? "all" : String.join(", ", all);
  }

  /// Returns the paths that a page claims on GPUs, of its rows and of the cells of its grids.
  private static List<TestedPath> claimed(String page) {
    var claimed = new ArrayList<TestedPath>();
    CELLS.matcher(page).results().forEach(row -> claimed.addAll(paths(row.group(3))));
    GRID.matcher(page)
        .results()
        .forEach(
            grid -> {
              var lines = grid.group().lines().filter(line -> line.startsWith("|")).toList();
              var columns = cells(lines.getFirst());
              for (var line : lines.subList(2, lines.size())) {
                var row = cells(line);
                for (int i = 1; i + 1 < row.size(); i++) {
                  var onCuda = row.get(i).replaceFirst(".* / ", "");
                  for (var kind : Capabilities.kinds()) {
                    if (onCuda.equals("all")
                        || List.of(onCuda.split(", ")).contains(kind.toString())) {
                      claimed.add(path(row.getFirst(), columns.get(i), kind));
                    }
                  }
                }
              }
            });
    return claimed;
  }

  private static List<String> cells(String line) {
    return Arrays.stream(line.split("\\|", -1)).skip(1).map(String::strip).toList();
  }

  /// Returns the paths that a page claims and the self-test does not test on GPUs.
  private static List<String> untested(String page, boolean quick) {
    var tested = TestedPath.tested(BackendKind.CUDA, RANKS, quick);
    return claimed(page).stream()
        .filter(path -> tested.stream().noneMatch(path::covers))
        .map(TestedPath::toString)
        .toList();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void everyPathOfThePageHasACaseInTheSelfTest(boolean quick) throws IOException {
    assertThat(untested(Files.readString(PAGE), quick)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void everyCaseOfTheSelfTestHasAPathOnThePage(boolean quick) throws IOException {
    var claimed = claimed(Files.readString(PAGE));
    assertThat(TestedPath.tested(BackendKind.CUDA, RANKS, quick))
        .allMatch(tested -> claimed.stream().anyMatch(path -> path.covers(tested)));
  }

  @Test
  void aRowOrACellWithoutACaseIsFound() throws IOException {
    var page = Files.readString(PAGE);
    var row = "| F11 | carrier pigeons |  | `attention: pigeons` | not run |  |\n";
    assertThat(untested(page + row, true)).containsExactly("attention: pigeons");
    assertThat(untested(page.replace(" two-level |", " three-level |"), true))
        .hasSize(11 * Capabilities.kinds().size())
        .contains("attention-backward: ipc: three-level");
  }

  @Test
  void aRowThatClaimsGpusNamesItsPaths() throws IOException {
    assertThat(CELLS.matcher(Files.readString(PAGE)).results())
        .allMatch(row -> row.group(3).equals(NONE) || !paths(row.group(3)).isEmpty())
        .filteredOn(row -> row.group().contains("on GPUs"))
        .isNotEmpty()
        .noneMatch(row -> row.group(3).equals(NONE));
  }

  private static SelfTestRecord record(String date, int ranks, String subject, String outcome) {
    return record(date, ranks, subject, outcome, "native\", \"ipc");
  }

  private static SelfTestRecord record(
      String date, int ranks, String subject, String outcome, String memory) {
    return SelfTestRecord.parse(
        """
        {"selftest": 1, "date": "%s", "backend": "cuda", "ranks": %d, "quick": false, "gpu": "NVIDIA H200", "gpus": 1,
         "sharedGpus": true, "driver": "580.95.05, CUDA 13.0", "groups": [
           {"what": ["%s"], "method": ["ring", "two-level"], "transport": ["copy_engine"],
            "memory": ["%s"], "dtype": ["bf16"], "outcome": "%s", "cases": 4, "said": ""}]}
        """
            .formatted(date, ranks, subject, memory, outcome));
  }

  @Test
  void rowsNameTheNewestRunOfTheirPaths() throws Exception {
    var records =
        List.of(
            record("2026-11-24", 4, "attention", "ok"),
            // Of the same day, with fewer paths.
            record("2026-11-24", 8, "attention", "ok", "native"),
            record("2026-11-25", 2, "packed-attention", "ok"),
            record("2026-11-26", 4, "attention-backward", "wrong"),
            record("2026-11-27", 4, "attention", "not_available"),
            record("2026-11-28", 1, "attention", "ok"));
    var page = generated(Files.readString(PAGE), records);
    var run = "2026-11-24, 4 ranks on 1 x NVIDIA H200, driver 580.95.05";
    assertThat(page.lines().filter(line -> line.startsWith("| B1 | ")))
        .singleElement()
        .asString()
        .contains("| `attention` | " + run.replace("4 ranks", "8 ranks") + " |");
    assertThat(page.lines().filter(line -> line.startsWith("| attention | ")))
        .singleElement()
        .asString()
        .contains("| " + run + ", without nccl memory, nvshmem memory, attention: ");
    assertThat(page.lines().filter(line -> line.startsWith("| B2 | ")))
        .singleElement()
        .asString()
        .contains("| 2026-11-26, 4 ranks on 1 x NVIDIA H200, driver 580.95.05, wrong: attention-");
    assertThat(page.lines().filter(line -> line.startsWith("| F11 | ")))
        .singleElement()
        .asString()
        .contains("| `symmetric tensor` | not run |");
  }

  @Test
  void thePageListsEveryTestThatIsNamedAfterARow() throws Exception {
    var listed = new TreeSet<String>();
    for (var row : rows()) {
      var tests = LISTED.matcher(row);
      while (tests.find()) {
        assertThat(tests.group(2)).as(row).startsWith(id(row).toLowerCase(Locale.ROOT));
        listed.add(tests.group(1) + "." + tests.group(2));
      }
    }
    assertThat(listed).containsExactlyElementsOf(tests());
  }

  @Test
  void everyRowHasATestOrTheReasonWhyNot() throws IOException {
    var expected =
        Stream.of(
                rows("A", 9),
                rows("B", 8),
                rows("C", 6),
                rows("D", 11),
                rows("E", 4),
                List.of("F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12"),
                List.of("G2", "G4", "G6", "G7"))
            .flatMap(List::stream)
            .toList();
    assertThat(rows().stream().map(CapabilitiesPageTest::id)).containsExactlyElementsOf(expected);
    assertThat(rows()).allMatch(row -> LISTED.matcher(row).find() || row.contains("not yet:"));
  }

  private static List<String> rows(String section, int count) {
    return IntStream.rangeClosed(1, count).mapToObj(i -> section + i).toList();
  }

  private static List<String> rows() throws IOException {
    var rows = new ArrayList<String>();
    var found = ROW.matcher(Files.readString(PAGE));
    while (found.find()) {
      rows.add(found.group());
    }
    return rows;
  }

  private static String id(String row) {
    var found = ROW.matcher(row);
    assertThat(found.matches()).isTrue();
    return found.group(1);
  }

  /// Returns every test method named after a row, as `Class.method`.
  private static Set<String> tests() throws Exception {
    List<Path> files;
    try (var all = Files.walk(CLASSES)) {
      files = all.filter(file -> file.toString().endsWith("Test.class")).toList();
    }
    var tests = new TreeSet<String>();
    for (var file : files) {
      var name = CLASSES.relativize(file).toString().replace('/', '.').replace(".class", "");
      var type = Class.forName(name, false, CapabilitiesPageTest.class.getClassLoader());
      Arrays.stream(type.getDeclaredMethods())
          .filter(method -> !method.isSynthetic())
          .filter(method -> NAMED_AFTER_A_ROW.matcher(method.getName()).matches())
          .forEach(method -> tests.add(type.getSimpleName() + "." + method.getName()));
    }
    return tests;
  }
}
