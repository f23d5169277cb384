package braid.launcher.notebook.report;

import static braid.launcher.notebook.report.JUnitXml.attributes;
import static braid.launcher.notebook.report.JUnitXml.failure;
import static braid.launcher.notebook.report.JUnitXml.skipped;
import static braid.launcher.notebook.report.JUnitXml.text;

import braid.internal.report.value.Caveats;
import braid.launcher.ExitCode;
import braid.launcher.experiment.Manifest;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.check.Difference;
import braid.launcher.notebook.check.NotebookRun;
import braid.launcher.notebook.run.CellResult;
import braid.natives.WholeFile;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamWriter;

/// A run as a JUnit XML file for CI: one suite per notebook, one test case per cell with its
/// printed output. A reason why a whole notebook did not run is an error of its suite. Names stay
/// the same from run to run, so that CI can follow a test case: the notebook's path relative to the
/// directory of the call, and the [CellNames].
public final class JUnitReport {
  private JUnitReport() {}

  public static void write(List<NotebookRun> runs, Facts facts, Path file) throws IOException {
    WholeFile.write(file, xml(runs, facts));
  }

  static String xml(List<NotebookRun> runs, Facts facts) {
    return JUnitXml.document(xml -> suites(xml, runs, facts));
  }

  private static void suites(XMLStreamWriter xml, List<NotebookRun> runs, Facts facts)
      throws XMLStreamException {
    xml.writeStartElement("testsuites");
    attributes(
        xml,
        "tests",
        sum(runs, JUnitReport::tests),
        "failures",
        sum(runs, JUnitReport::failures),
        "errors",
        sum(runs, JUnitReport::errors),
        "skipped",
        sum(runs, JUnitReport::notRun),
        "time",
        seconds(
            runs.stream()
                .map(run -> run.result().elapsed())
                .reduce(Duration.ZERO, Duration::plus)));
    for (var run : runs) {
      xml.writeCharacters("\n");
      suite(xml, run, facts);
    }
    xml.writeCharacters("\n");
    xml.writeEndElement();
  }

  private static String sum(List<NotebookRun> runs, ToLongFunction<NotebookRun> count) {
    return Long.toString(runs.stream().mapToLong(count).sum());
  }

  private static long errors(NotebookRun run) {
    return trouble(run).isPresent() ? 1 : 0;
  }

  /// Empty for a notebook that was not meant to run.
  private static Optional<String> trouble(NotebookRun run) {
    return run.exitCode() == ExitCode.OK ? Optional.empty() : run.result().trouble();
  }

  private static long tests(NotebookRun run) {
    return run.result().cells().size() + errors(run);
  }

  private static long failures(NotebookRun run) {
    return run.result().cells().stream().filter(cell -> isFailure(run, cell)).count();
  }

  private static boolean isFailure(NotebookRun run, CellResult cell) {
    return !run.differences(cell).isEmpty()
        || (cell.status() == CellResult.Status.FAILED && !run.failsAsRecorded());
  }

  private static long notRun(NotebookRun run) {
    return run.result().count(CellResult.Status.SKIPPED)
        + run.result().count(CellResult.Status.PENDING);
  }

  private static void suite(XMLStreamWriter xml, NotebookRun run, Facts facts)
      throws XMLStreamException {
    var result = run.result();
    xml.writeStartElement("testsuite");
    var name = name(result.notebook());
    attributes(
        xml,
        "name",
        name,
        "tests",
        Long.toString(tests(run)),
        "failures",
        Long.toString(failures(run)),
        "errors",
        Long.toString(errors(run)),
        "skipped",
        Long.toString(notRun(run)),
        "time",
        seconds(result.elapsed()));
    properties(xml, properties(run, facts));
    var cells = CellNames.of(run.notebook());
    for (int i = 0; i < result.cells().size(); i++) {
      xml.writeCharacters("\n  ");
      testCase(xml, run, result.cells().get(i), name, cells.get(i));
    }
    var trouble = trouble(run);
    if (trouble.isPresent()) {
      xml.writeCharacters("\n  ");
      asAWhole(xml, name, trouble.get());
    }
    xml.writeCharacters("\n");
    xml.writeEndElement();
  }

  /// Returns the notebook's path relative to the directory of the call, which checkouts in other
  /// places share; a path outside of it as it is.
  private static String name(String notebook) {
    var path = Path.of(notebook);
    var here = Path.of("").toAbsolutePath();
    return path.isAbsolute() && path.startsWith(here) ? here.relativize(path).toString() : notebook;
  }

  /// Returns run, ranks, link, revision and the headlines of the studies, as far as there are any.
  private static SequencedMap<String, String> properties(NotebookRun run, Facts facts) {
    var properties = new LinkedHashMap<String, String>();
    run.manifest()
        .ifPresent(
            manifest -> {
              properties.put("run", manifest.id());
              manifest.text("session.ranks").ifPresent(ranks -> properties.put("ranks", ranks));
              manifest.text("session.link").ifPresent(link -> properties.put("link", link));
              manifest
                  .text("git.revision")
                  .ifPresent(revision -> properties.put("revision", revision));
              var headlines =
                  manifest.measured().stream()
                      .filter(Manifest.Measured::isStudy)
                      .map(Manifest.Measured::answer)
                      .collect(Collectors.joining("\n"));
              if (!headlines.isEmpty()) {
                properties.put("headline", headlines);
              }
            });
    var times = facts.environment().get(Caveats.COLUMN);
    if (times != null) {
      properties.put(Caveats.COLUMN, times);
    }
    return properties;
  }

  private static void properties(XMLStreamWriter xml, SequencedMap<String, String> properties)
      throws XMLStreamException {
    if (properties.isEmpty()) {
      return;
    }
    xml.writeCharacters("\n  ");
    xml.writeStartElement("properties");
    for (var property : properties.entrySet()) {
      xml.writeEmptyElement("property");
      attributes(xml, "name", property.getKey(), "value", property.getValue());
    }
    xml.writeEndElement();
  }

  private static void asAWhole(XMLStreamWriter xml, String notebook, String why)
      throws XMLStreamException {
    xml.writeStartElement("testcase");
    attributes(
        xml,
        "classname",
        notebook,
        "name",
        "the notebook as a whole",
        "time",
        seconds(Duration.ZERO));
    xml.writeEmptyElement("error");
    attributes(xml, "type", "NotebookTrouble", "message", why);
    xml.writeEndElement();
  }

  private static void testCase(
      XMLStreamWriter xml, NotebookRun run, CellResult cell, String notebook, String name)
      throws XMLStreamException {
    xml.writeStartElement("testcase");
    attributes(xml, "classname", notebook, "name", name, "time", seconds(cell.elapsed()));
    switch (cell.status()) {
      case COMPLETED -> {}
      case SKIPPED -> skipped(xml, "tagged " + NotebookCell.SKIP_EXECUTION);
      case PENDING ->
          skipped(xml, run.result().trouble().orElse("not run, because an earlier cell failed"));
      case FAILED -> {
        if (!run.failsAsRecorded()) {
          var failure = cell.failure().orElseThrow();
          failure(xml, failure.name(), failure.message(), String.join("\n", failure.traceback()));
        }
      }
    }
    var differences = run.differences(cell);
    if (!differences.isEmpty() && cell.status() != CellResult.Status.FAILED) {
      failure(
          xml,
          "Difference",
          differences.getFirst().toString(),
          differences.stream().map(Difference::toString).collect(Collectors.joining("\n")));
    }
    if (!cell.printed().isEmpty()) {
      xml.writeStartElement("system-out");
      text(xml, cell.printed());
      xml.writeEndElement();
    }
    xml.writeEndElement();
  }

  private static String seconds(Duration duration) {
    return String.format(Locale.ROOT, "%.3f", duration.toNanos() / 1e9);
  }
}
