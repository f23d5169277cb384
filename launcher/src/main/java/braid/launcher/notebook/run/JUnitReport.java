package braid.launcher.notebook.run;

import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.WholeFile;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import javax.xml.stream.XMLOutputFactory;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamWriter;

/// A run as a JUnit XML file, which every CI reads: one test case a cell, with what it printed.
public final class JUnitReport {
  private JUnitReport() {}

  public static void write(RunResult result, Path file) throws IOException {
    WholeFile.write(file, xml(result));
  }

  static String xml(RunResult result) {
    var text = new StringWriter();
    try {
      var xml = XMLOutputFactory.newFactory().createXMLStreamWriter(text);
      xml.writeStartDocument("UTF-8", "1.0");
      xml.writeCharacters("\n");
      suite(xml, result);
      xml.writeEndDocument();
      xml.close();
    } catch (XMLStreamException e) {
      throw new IllegalStateException("writing XML into memory failed", e);
    }
    return text.append('\n').toString();
  }

  private static void suite(XMLStreamWriter xml, RunResult result) throws XMLStreamException {
    xml.writeStartElement("testsuite");
    attribute(xml, "name", result.notebook());
    attribute(xml, "tests", Integer.toString(result.cells().size()));
    attribute(xml, "failures", Long.toString(result.count(CellResult.Status.FAILED)));
    attribute(xml, "errors", "0");
    attribute(
        xml,
        "skipped",
        Long.toString(
            result.count(CellResult.Status.SKIPPED) + result.count(CellResult.Status.PENDING)));
    attribute(xml, "time", seconds(result.elapsed()));
    for (var cell : result.cells()) {
      xml.writeCharacters("\n  ");
      testCase(xml, result.notebook(), cell);
    }
    xml.writeCharacters("\n");
    xml.writeEndElement();
  }

  private static void testCase(XMLStreamWriter xml, String notebook, CellResult cell)
      throws XMLStreamException {
    xml.writeStartElement("testcase");
    attribute(xml, "classname", notebook);
    attribute(xml, "name", cell.name() + ": " + cell.firstLine());
    attribute(xml, "time", seconds(cell.elapsed()));
    switch (cell.status()) {
      case COMPLETED -> {}
      case SKIPPED -> skipped(xml, "tagged " + NotebookCell.SKIP_EXECUTION);
      case PENDING -> skipped(xml, "not run, because an earlier cell failed");
      case FAILED -> {
        var failure = cell.failure().orElseThrow();
        xml.writeStartElement("failure");
        attribute(xml, "type", failure.name());
        attribute(xml, "message", failure.message());
        xml.writeCharacters(allowed(String.join("\n", failure.traceback())));
        xml.writeEndElement();
      }
    }
    if (!cell.printed().isEmpty()) {
      xml.writeStartElement("system-out");
      xml.writeCharacters(allowed(cell.printed()));
      xml.writeEndElement();
    }
    xml.writeEndElement();
  }

  private static void skipped(XMLStreamWriter xml, String why) throws XMLStreamException {
    xml.writeEmptyElement("skipped");
    attribute(xml, "message", why);
  }

  private static void attribute(XMLStreamWriter xml, String name, String value)
      throws XMLStreamException {
    xml.writeAttribute(name, allowed(value));
  }

  private static String seconds(Duration duration) {
    return String.format(Locale.ROOT, "%.3f", duration.toNanos() / 1e9);
  }

  /// XML has no way to write most control characters, not even escaped.
  private static String allowed(String text) {
    var clean = new StringBuilder(text.length());
    text.codePoints()
        .forEach(
            c -> {
              boolean allowed =
                  c == '\n'
                      || c == '\t'
                      || c == '\r'
                      || (c >= 0x20 && c <= 0xD7FF)
                      || (c >= 0xE000 && c <= 0xFFFD)
                      || c >= 0x10000;
              clean.appendCodePoint(allowed ? c : 0xFFFD);
            });
    return clean.toString();
  }
}
