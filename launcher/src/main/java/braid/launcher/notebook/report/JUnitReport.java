package braid.launcher.notebook.report;

import static braid.launcher.notebook.report.JUnitXml.attribute;
import static braid.launcher.notebook.report.JUnitXml.failure;
import static braid.launcher.notebook.report.JUnitXml.skipped;
import static braid.launcher.notebook.report.JUnitXml.text;

import braid.internal.report.value.Caveats;
import braid.launcher.ExitCode;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.check.Difference;
import braid.launcher.notebook.check.NotebookRun;
import braid.launcher.notebook.run.CellResult;
import braid.natives.WholeFile;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamWriter;

/// A run as a JUnit XML file for CI: one suite per notebook, one test case per cell with its
/// printed output. A reason why a whole notebook did not run is an error of its suite.
public final class JUnitReport {
  private JUnitReport() {}

  public static void write(List<NotebookRun> runs, Facts facts, Path file) throws IOException {
    WholeFile.write(file, xml(runs, facts));
  }

  static String xml(List<NotebookRun> runs, Facts facts) {
    return JUnitXml.document(
        xml -> {
          if (runs.size() == 1) {
            suite(xml, runs.getFirst(), facts);
          } else {
            suites(xml, runs, facts);
          }
        });
  }

  private static void suites(XMLStreamWriter xml, List<NotebookRun> runs, Facts facts)
      throws XMLStreamException {
    xml.writeStartElement("testsuites");
    attribute(xml, "tests", sum(runs, JUnitReport::tests));
    attribute(xml, "failures", sum(runs, JUnitReport::failures));
    attribute(xml, "errors", sum(runs, JUnitReport::errors));
    attribute(xml, "skipped", sum(runs, JUnitReport::notRun));
    attribute(
        xml,
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
    attribute(xml, "name", result.notebook());
    attribute(xml, "tests", Long.toString(tests(run)));
    attribute(xml, "failures", Long.toString(failures(run)));
    attribute(xml, "errors", Long.toString(errors(run)));
    attribute(xml, "skipped", Long.toString(notRun(run)));
    attribute(xml, "time", seconds(result.elapsed()));
    var times = facts.environment().get(Caveats.COLUMN);
    if (times != null) {
      xml.writeCharacters("\n  ");
      property(xml, Caveats.COLUMN, times);
    }
    for (var cell : result.cells()) {
      xml.writeCharacters("\n  ");
      testCase(xml, run, cell);
    }
    var trouble = trouble(run);
    if (trouble.isPresent()) {
      xml.writeCharacters("\n  ");
      asAWhole(xml, result.notebook(), trouble.get());
    }
    xml.writeCharacters("\n");
    xml.writeEndElement();
  }

  private static void property(XMLStreamWriter xml, String name, String value)
      throws XMLStreamException {
    xml.writeStartElement("properties");
    xml.writeEmptyElement("property");
    attribute(xml, "name", name);
    attribute(xml, "value", value);
    xml.writeEndElement();
  }

  private static void asAWhole(XMLStreamWriter xml, String notebook, String why)
      throws XMLStreamException {
    xml.writeStartElement("testcase");
    attribute(xml, "classname", notebook);
    attribute(xml, "name", "the notebook as a whole");
    attribute(xml, "time", seconds(Duration.ZERO));
    xml.writeEmptyElement("error");
    attribute(xml, "type", "NotebookTrouble");
    attribute(xml, "message", why);
    xml.writeEndElement();
  }

  private static void testCase(XMLStreamWriter xml, NotebookRun run, CellResult cell)
      throws XMLStreamException {
    xml.writeStartElement("testcase");
    attribute(xml, "classname", run.result().notebook());
    attribute(xml, "name", cell.name() + ": " + cell.firstLine());
    attribute(xml, "time", seconds(cell.elapsed()));
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
