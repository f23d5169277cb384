package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.model.BackendKind;
import braid.model.MimeBundle;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Values of cells as text, and as HTML where that shows more.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class RichValuesTest {
  private Session session;
  private Recorded output = new Recorded();

  @BeforeAll
  void start(@TempDir Path home) {
    session = Session.start(new SessionOptions(2, BackendKind.HOST, Optional.empty(), home));
    run("record Way(String name, int splits, double ms) {}");
    run("record Size(int m, int n) { public String toString() { return m + \"x\" + n; } }");
  }

  @AfterAll
  void close() {
    session.close();
  }

  private Optional<MimeBundle> run(String source) {
    output = new Recorded();
    var outcome = session.run(new Cell("a cell", source), output);
    assertThat(outcome.failure()).isEmpty();
    return outcome.result();
  }

  private void run(String source, String message) {
    output = new Recorded();
    var outcome = session.run(new Cell("a cell", source), output);
    assertThat(outcome.failure().orElseThrow().message()).isEqualTo(message);
  }

  private String text(String source) {
    return run(source).orElseThrow().text();
  }

  private String html(String source) {
    return run(source).orElseThrow().data().getOrDefault(MimeBundle.HTML, "");
  }

  @Test
  void shortValuesStayUnchanged() {
    assertThat(text("\"text\"")).isEqualTo("text");
    assertThat(text("List.of(1, 2, 3)")).isEqualTo("[1, 2, 3]");
    assertThat(text("new int[] {1, 2}")).isEqualTo("[1, 2]");
    assertThat(text("Map.of()")).isEqualTo("{}");
    assertThat(text("Optional.of(3)")).isEqualTo("Optional[3]");
    assertThat(text("new Size(2, 3)")).isEqualTo("2x3");
    assertThat(html("List.of(1, 2, 3)")).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "%%rank 1\n", "%%front\n"})
  void progressOfALoopIsOneDisplay(String header) {
    var loop =
        header
            + "{\n  int sum = 0;\n"
            + "  for (var n : progress(List.of(10, 20, 12), \"sizes\")) sum += n;\n"
            + "  System.out.println(sum);\n}";
    run(loop);
    assertThat(output.out.toString()).endsWith("42\n");
    assertThat(output.shown.getFirst()).matches("\\[·{24}] sizes 0/3 · starting · \\d+\\.\\d s");
    assertThat(output.shown.getLast())
        .matches("update progress-\\S+: \\[█{24}] sizes 3/3 · done · \\d+\\.\\d s");
    assertThat(output.shown.stream().skip(1).map(shown -> shown.split(": ", -1)[0]).distinct())
        .hasSize(1);
    run(
        loop.replace("sum += n;", "if (n == 20) throw new IllegalStateException(\"twenty\");"),
        "twenty");
    assertThat(output.shown).noneMatch(shown -> shown.contains("done"));
    run(header + "for (var n : progress(List.of(), \"sizes\")) System.out.println(\"wrong\");");
    assertThat(output.out).isEmpty();
    assertThat(output.shown.getLast()).contains("sizes 0/0 · done");
  }

  @Test
  void aRecordIsItsComponents() {
    assertThat(text("new Way(\"<ring>\", 4, 1.5)"))
        .isEqualTo("Way\ncomponent  value\nname       <ring>\nsplits     4\nms         1.5");
    assertThat(html("Optional.of(new Way(\"<ring>\", 4, 1.5))")).contains("<table", "&lt;ring&gt;");
  }

  @Test
  void recordsAreATableWithNumbersAlignedAndTheTrueSize() {
    assertThat(text("List.of(new Way(\"a\", 16, 0.5), new Way(\"bulk\", 4, 12.25))"))
        .isEqualTo("name  splits     ms\na         16    0.5\nbulk       4  12.25");
    var many = "IntStream.range(0, 1000).mapToObj(i -> new Way(\"w\" + i, i, i / 2.0))";
    assertThat(text(many + ".toList()").lines()).hasSize(22).last().isEqualTo("first 20 of 1,000");
    assertThat(text(many + ".toArray(Way[]::new)").lines()).last().isEqualTo("first 20 of 1,000");
    assertThat(text(many).lines()).last().isEqualTo("first 20 of a stream that has more");
    assertThat(text(many + ".limit(2)").lines()).hasSize(3);
    assertThat(html(many + ".toList()")).contains("first 20 of 1,000").doesNotContain("w20<");
    assertThat(text("whole(" + many + ".toList())").lines()).hasSize(1001);
    assertThat(text("List.of(new Size(1, 2))")).isEqualTo("[1x2]");
  }

  @Test
  void mapsAreTwoColumnsAndLongOnesAreCut() {
    assertThat(text("new TreeMap<>(Map.of(\"a\", 1, \"bb\", 22))"))
        .isEqualTo("key  value\na        1\nbb      22");
    assertThat(
            text("IntStream.range(0, 50).boxed().collect(Collectors.toMap(i -> i, i -> new int[i]))")
                .lines())
        .contains("first 20 of 50");
    assertThat(text("Map.of(\"inner\", IntStream.range(0, 3000).boxed().toList())"))
        .endsWith("inner  3,000 elements");
    assertThat(text("new double[1000]")).endsWith("0.0, …]\nfirst 20 of 1,000");
    assertThat(text("Stream.iterate(1, i -> 2 * i)"))
        .startsWith("[1, 2, 4, ")
        .endsWith("that has more");
  }

  @Test
  void aTablesawTableShowsSizeAndIsWholeOnRequest() {
    run(
        "var table = tech.tablesaw.api.Table.create(\"numbers\").addColumns(tech.tablesaw.api.IntColumn.create(\"n\", IntStream.range(0, 1000).toArray()));");
    assertThat(text("table").lines())
        .hasSize(24)
        .last()
        .isEqualTo("1,000 rows × 1 columns (n integer); whole(table) shows all");
    assertThat(text("whole(table)").lines())
        .hasSize(1003)
        .last()
        .isEqualTo("1,000 rows × 1 columns (n integer)");
  }

  @Test
  void ranksWhoseValuesDifferAreShownEachByItsTable() {
    var merged = run("new Way(\"of\", world.rank(), 0)").orElseThrow();
    assertThat(merged.text()).startsWith("[0]\nWay\n").contains("\n[1]\nWay\n");
    assertThat(merged.data().get(MimeBundle.HTML))
        .contains("<td>1</td>")
        .containsPattern("(?s)<table.*<table.*<table");
  }

  @Test
  void aDisplayIsShownAtOnceAndReplaced() {
    run("var shown = display(new Way(\"now\", 1, 2), \"place\"); shown.update(\"then\");");
    assertThat(output.shown).hasSize(2).first().asString().startsWith("Way\n");
    assertThat(output.shown.getLast()).isEqualTo("update place: then");
    run("updateDisplay(\"place\", 3);");
    assertThat(output.shown).containsExactly("update place: 3");
    run("%%output all\ndisplay(world.rank());");
    assertThat(output.shown).containsExactlyInAnyOrder("[0] 0", "[1] 1");
    run("%%front\ndisplay(List.of(1, 2)).update(\"done\");");
    assertThat(output.shown).hasSize(2).first().isEqualTo("[1, 2]");
  }

  @Test
  void aDisplayedStudyHasItsTable() {
    run(
        "display(Tuner.on(world).steps(\"two\").step(\"a\", () -> {}).step(\"b\", () -> {})"
            + ".repeats(6).run());");
    assertThat(output.shown.getLast()).containsPattern("(?m)^configuration +verdict +median ms ");
  }

  @Test
  void contentOfAMimeTypeIsShownAsSuch() {
    for (var front : List.of("", "%%front\n")) {
      var html = run(front + "html(\"<b>4</b>\")").orElseThrow();
      assertThat(html.data())
          .containsExactly(Map.entry("text/plain", "<b>4</b>"), Map.entry("text/html", "<b>4</b>"));
      assertThat(run(front + "markdown(\"**4**\")").orElseThrow().data())
          .containsEntry("text/markdown", "**4**");
      assertThat(run(front + "svg(\"<svg/>\")").orElseThrow().data())
          .containsEntry("image/svg+xml", "<svg/>");
      assertThat(run(front + "MimeBundle.text(\"a bundle\")").orElseThrow().text())
          .isEqualTo("a bundle");
      assertThat(run(front + "display(\"<b>5</b>\", \"text/html\")")).isEmpty();
      assertThat(output.shown).containsExactly("<b>5</b>");
      assertThat(run(front + "display(6)")).isEmpty();
      assertThat(output.shown).containsExactly("6");
    }
  }
}
