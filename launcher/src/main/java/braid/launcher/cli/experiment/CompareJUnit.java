package braid.launcher.cli.experiment;

import static braid.launcher.notebook.report.JUnitXml.attributes;

import braid.evidence.Comparison;
import braid.evidence.Comparison.Row;
import braid.evidence.Comparison.Verdict;
import braid.internal.report.value.Caveats;
import braid.launcher.notebook.report.JUnitXml;
import braid.natives.WholeFile;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamWriter;

/// A comparison as a JUnit XML file: a suite per study, a test case per configuration, which fails
/// if that is slower. Undecided ones are skipped, or fail with `--fail-on-undecided`; those that
/// cannot be judged are skipped.
final class CompareJUnit {
  private static final double NANOS_PER_MILLI = 1e6;
  private static final double NANOS_PER_SECOND = 1e9;

  private CompareJUnit() {}

  static void write(List<Comparison> comparisons, boolean failOnUndecided, Path file)
      throws IOException {
    WholeFile.write(file, xml(comparisons, failOnUndecided));
  }

  /// Writes the errors of times that no machine can reach: an error each.
  static void writeImpossible(List<String> faults, Path file) throws IOException {
    var count = Integer.toString(faults.size());
    var document =
        JUnitXml.document(
            xml -> {
              xml.writeStartElement("testsuites");
              xml.writeCharacters("\n");
              xml.writeStartElement("testsuite");
              attributes(
                  xml,
                  "name",
                  "times",
                  "tests",
                  count,
                  "failures",
                  "0",
                  "errors",
                  count,
                  "skipped",
                  "0");
              for (var fault : faults) {
                xml.writeCharacters("\n  ");
                xml.writeStartElement("testcase");
                attributes(
                    xml, "classname", "times", "name", fault.substring(fault.indexOf(' ') + 1));
                xml.writeStartElement("error");
                attributes(xml, "message", fault, "type", fault.substring(0, fault.indexOf(':')));
                xml.writeEndElement();
                xml.writeEndElement();
              }
              xml.writeCharacters("\n");
              xml.writeEndElement();
              xml.writeCharacters("\n");
              xml.writeEndElement();
            });
    WholeFile.write(file, document);
  }

  private static String xml(List<Comparison> comparisons, boolean failOnUndecided) {
    return JUnitXml.document(
        xml -> {
          xml.writeStartElement("testsuites");
          counts(xml, comparisons, failOnUndecided);
          for (var comparison : comparisons) {
            xml.writeCharacters("\n");
            suite(xml, comparison, failOnUndecided);
          }
          xml.writeCharacters("\n");
          xml.writeEndElement();
        });
  }

  private static void counts(
      XMLStreamWriter xml, List<Comparison> comparisons, boolean failOnUndecided)
      throws XMLStreamException {
    long rows = comparisons.stream().mapToLong(each -> each.rows().size()).sum();
    long slower = comparisons.stream().mapToLong(each -> each.count(Verdict.SLOW)).sum();
    long undecided = comparisons.stream().mapToLong(each -> each.count(Verdict.UNDECIDED)).sum();
    attributes(xml, "tests", Long.toString(rows));
    long notJudged =
        comparisons.stream()
            .mapToLong(
                each -> each.count(Verdict.NOT_COMPARED) + each.count(Verdict.MACHINE_DIFFERED))
            .sum();
    attributes(
        xml,
        "failures",
        Long.toString(failOnUndecided ? slower + undecided : slower),
        "errors",
        "0",
        "skipped",
        Long.toString(notJudged + (failOnUndecided ? 0 : undecided)));
  }

  private static void suite(XMLStreamWriter xml, Comparison comparison, boolean failOnUndecided)
      throws XMLStreamException {
    xml.writeStartElement("testsuite");
    attributes(xml, "name", comparison.setting());
    counts(xml, List.of(comparison), failOnUndecided);
    for (var row : comparison.rows()) {
      xml.writeCharacters("\n  ");
      xml.writeStartElement("testcase");
      attributes(
          xml,
          "classname",
          comparison.setting(),
          "name",
          row.configuration(),
          "time",
          String.format(Locale.ROOT, "%.6f", row.secondNanos() / NANOS_PER_SECOND));
      switch (row.verdict()) {
        case SAME, FAST -> {}
        case NOT_COMPARED -> JUnitXml.skipped(xml, Caveats.SHARED);
        case MACHINE_DIFFERED -> JUnitXml.skipped(xml, words(row, comparison.values()));
        case SLOW ->
            JUnitXml.failure(
                xml,
                row.verdict().toString(),
                words(row, comparison.values()),
                words(row, comparison.values()));
        case UNDECIDED -> {
          if (failOnUndecided) {
            JUnitXml.failure(
                xml,
                row.verdict().toString(),
                words(row, comparison.values()),
                words(row, comparison.values()));
          } else {
            JUnitXml.skipped(xml, words(row, comparison.values()));
          }
        }
      }
      xml.writeEndElement();
    }
    xml.writeCharacters("\n");
    xml.writeEndElement();
  }

  private static String words(Row row, String values) {
    var difference = row.difference();
    var words =
        String.format(
            Locale.ROOT,
            "%s: %.4g ms to %.4g ms, %+.1f%% (%+.1f%% to %+.1f%%)",
            row.verdict(),
            row.firstNanos() / NANOS_PER_MILLI,
            row.secondNanos() / NANOS_PER_MILLI,
            100 * difference.value(),
            100 * difference.low(),
            100 * difference.high());
    if (row.verdict() == Verdict.MACHINE_DIFFERED) {
      return row.beside()
          .map(
              beside ->
                  words + String.format(Locale.ROOT, "; ÷ reference %+.1f%%", 100 * beside.value()))
          .orElse(words + "; each configuration is judged beside its own run's reference");
    }
    return row.moreRounds().isPresent()
        ? words + "; about %d more %s would decide".formatted(row.moreRounds().getAsInt(), values)
        : words;
  }
}
