package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.BackendKind;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import braid.model.Method;
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

/// docs/capabilities.md is generated: its grids from [Capabilities], its column of tests from the
/// test methods that are named after a row. What a row is about, and its note, are written on the
/// page. The test writes the page as it should be to `target/capabilities.md`; to regenerate it,
/// run the test and copy it from there.
class CapabilitiesPageTest {
  private static final Path PAGE = Path.of("../docs/capabilities.md");
  private static final Path CLASSES = Path.of("target/test-classes");
  private static final Pattern NAMED_AFTER_A_ROW = Pattern.compile("([a-g])(\\d+)[A-Z]\\w*");
  private static final Pattern LISTED = Pattern.compile("`(\\w+Test)\\.([a-g]\\d+[A-Z]\\w*)`");
  private static final Pattern ROW = Pattern.compile("(?m)^\\| ([A-G]\\d+) \\|.*$");
  private static final Pattern CELLS =
      Pattern.compile("(?m)^\\| ([A-G]\\d+) \\| ([^|]*) \\| [^|]* \\| ?([^|]*?) ?\\|$");
  private static final Pattern GRID =
      Pattern.compile("(?s)(<!-- generated: (\\w+) -->\n).*?(<!-- end -->)");
  private static final Path REGENERATED = Path.of("target/capabilities.md");

  @Test
  void thePageIsAsGenerated() throws Exception {
    var page = Files.readString(PAGE);
    var tests = tests();
    var withTests = CELLS.matcher(page).replaceAll(row -> quote(row(row, tests)));
    var generated =
        GRID.matcher(withTests)
            .replaceAll(grid -> quote(grid.group(1) + grid(grid.group(2)) + grid.group(3)));
    Files.writeString(REGENERATED, generated);
    assertThat(CELLS.matcher(page).results()).hasSameSizeAs(rows());
    assertThat(GRID.matcher(page).results().map(grid -> grid.group(2)))
        .containsExactly("pipelines", "collectives");
    assertThat(page).as("%s, regenerated as %s", PAGE, REGENERATED).isEqualTo(generated);
  }

  private static String quote(String text) {
    return Matcher.quoteReplacement(text);
  }

  private static String row(MatchResult row, Set<String> tests) {
    var prefix = row.group(1).toLowerCase(Locale.ROOT);
    var own =
        tests.stream()
            .filter(test -> test.matches("\\w+\\." + prefix + "[A-Z].*"))
            .map(test -> "`" + test + "`")
            .collect(Collectors.joining("<br>"));
    return "| %s | %s | %s | %s |".formatted(row.group(1), row.group(2), own, row.group(3));
  }

  private static String grid(String name) {
    return switch (name) {
      case "pipelines" -> pipelines();
      case "collectives" -> collectives();
      default -> throw new AssertionError(name);
    };
  }

  private static String pipelines() {
    return table(
        "pattern",
        Arrays.asList(GemmSpec.Pattern.values()),
        Arrays.asList(Method.values()),
        (backend, pattern, method) ->
            Capabilities.of(backend).stream()
                .filter(row -> row.pattern() == pattern && row.method() == method)
                .collect(
                    Collectors.groupingBy(
                        Capabilities.Row::kind, TreeMap::new, Collectors.toList()))
                .entrySet()
                .stream()
                .filter(kind -> kind.getValue().stream().allMatch(Capabilities.Row::supported))
                .map(Map.Entry::getKey));
  }

  private static String collectives() {
    return table(
        "collective",
        Arrays.asList(Collective.values()),
        Arrays.asList(CollectiveWay.values()),
        (backend, collective, way) ->
            Capabilities.collectivesOf(backend).stream()
                .filter(
                    row -> row.collective() == collective && row.way() == way && row.supported())
                .map(Capabilities.CollectiveRow::kind));
  }

  /// The kinds of memory in which a backend can do it.
  private interface Supported<R, C> {
    Stream<MemoryKind> by(BackendKind backend, R row, C column);
  }

  private static <R, C> String table(
      String corner, List<R> rows, List<C> columns, Supported<R, C> supported) {
    var table = new StringBuilder("| " + corner + " |");
    columns.forEach(column -> table.append(" %s |".formatted(column)));
    table.append("\n|---|").append("---|".repeat(columns.size())).append('\n');
    for (var row : rows) {
      table.append("| %s |".formatted(row));
      for (var column : columns) {
        var host = joined(supported.by(BackendKind.HOST, row, column));
        var cuda = joined(supported.by(BackendKind.CUDA, row, column));
        table.append(
            host.equals(cuda) ? " %s |".formatted(host) : " %s / %s |".formatted(host, cuda));
      }
      table.append('\n');
    }
    return table.toString();
  }

  private static String joined(Stream<MemoryKind> kinds) {
    var all = kinds.map(MemoryKind::toString).toList();
    return all.isEmpty()
        ? "–"
        : all.size() == Capabilities.kinds().size() ? "all" : String.join(", ", all);
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
                List.of("F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F11"),
                List.of("G6", "G7"))
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
