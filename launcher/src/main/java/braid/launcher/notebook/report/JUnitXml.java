package braid.launcher.notebook.report;

import java.io.StringWriter;
import javax.xml.stream.XMLOutputFactory;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamWriter;

/// Writes the parts of JUnit XML that all reports share.
public final class JUnitXml {
  private JUnitXml() {}

  /// The content of a document.
  public interface Content {
    void to(XMLStreamWriter xml) throws XMLStreamException;
  }

  public static String document(Content content) {
    var text = new StringWriter();
    try {
      var xml = XMLOutputFactory.newFactory().createXMLStreamWriter(text);
      xml.writeStartDocument("UTF-8", "1.0");
      xml.writeCharacters("\n");
      content.to(xml);
      xml.writeEndDocument();
      xml.close();
    } catch (XMLStreamException e) {
      throw new IllegalStateException("writing XML into memory failed", e);
    }
    return text.append('\n').toString();
  }

  /// Writes a failure of the current test case.
  public static void failure(XMLStreamWriter xml, String type, String message, String text)
      throws XMLStreamException {
    xml.writeStartElement("failure");
    attributes(xml, "type", type, "message", message);
    text(xml, text);
    xml.writeEndElement();
  }

  /// Marks the current test case as skipped.
  public static void skipped(XMLStreamWriter xml, String why) throws XMLStreamException {
    xml.writeEmptyElement("skipped");
    attributes(xml, "message", why);
  }

  /// Writes attributes, names and values in turn.
  public static void attributes(XMLStreamWriter xml, String... all) throws XMLStreamException {
    for (int i = 0; i < all.length; i += 2) {
      xml.writeAttribute(all[i], allowed(all[i + 1]));
    }
  }

  public static void text(XMLStreamWriter xml, String text) throws XMLStreamException {
    xml.writeCharacters(allowed(text));
  }

  /// Replaces control characters that XML cannot hold, even escaped.
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
