package braid;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// docs/capabilities.md lists exactly the existing tests.
class CapabilitiesPageTest {
  private static final Path PAGE = Path.of("../docs/capabilities.md");
  private static final Path CLASSES = Path.of("target/test-classes");
  private static final Pattern NAMED_AFTER_A_ROW = Pattern.compile("([a-f])(\\d+)[A-Z]\\w*");
  private static final Pattern LISTED = Pattern.compile("`(\\w+Test)\\.([a-f]\\d+[A-Z]\\w*)`");
  private static final Pattern ROW = Pattern.compile("(?m)^\\| ([A-F]\\d+) \\|.*$");

  @Test
  void thePageListsEveryTestThatIsNamedAfterARow() throws Exception {
    var listed = new TreeSet<String>();
    for (var row : rows()) {
      var tests = LISTED.matcher(row);
      while (tests.find()) {
        assertThat(tests.group(2)).as(row).startsWith(id(row).toLowerCase(java.util.Locale.ROOT));
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
                List.of("F4", "F6", "F7", "F9", "F11"))
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
