package braid.launcher.notebook.run;

import java.io.IOException;
import java.nio.file.Path;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Document;
import org.xml.sax.SAXException;

/// Reads the written XML back.
final class Xml {
  private Xml() {}

  static Document parse(Path file) throws IOException {
    try {
      return DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(file.toFile());
    } catch (ParserConfigurationException | SAXException e) {
      throw new IOException(file + " is no XML", e);
    }
  }
}
