package braid.launcher.notebook.report;

import java.nio.charset.StandardCharsets;
import java.util.Base64;

/// A picture within the page. SVG becomes an image too: what an image holds cannot run, and its ids
/// do not meet those of the next one.
final class Picture {
  private static final String NAMESPACE = "xmlns=\"http://www.w3.org/2000/svg\"";

  private Picture() {}

  static String svg(String svg, String alt) {
    var whole = svg.contains("xmlns=") ? svg : svg.replaceFirst("<svg\\b", "<svg " + NAMESPACE);
    return of(
        "image/svg+xml",
        Base64.getEncoder().encodeToString(whole.getBytes(StandardCharsets.UTF_8)),
        alt);
  }

  /// @param base64 as nbformat has it, with line ends
  static String of(String type, String base64, String alt) {
    return "<img class=\"picture\" alt=\"%s\" src=\"data:%s;base64,%s\">"
        .formatted(Escape.html(alt), type, base64.replaceAll("[^A-Za-z0-9+/=]", ""));
  }
}
