package braid.launcher.notebook.report;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.regex.Pattern;

/// An image within the page, as the URL that holds its bytes. SVG becomes an image too: an image
/// cannot run anything, and its ids do not meet those of the next one.
final class Picture {
  private static final String NAMESPACE = "xmlns=\"http://www.w3.org/2000/svg\"";
  private static final Pattern URL =
      Pattern.compile("data:image/(png|jpeg|gif|webp|svg\\+xml);base64,[A-Za-z0-9+/=\\s]*");

  private Picture() {}

  static boolean isPicture(String url) {
    return URL.matcher(url).matches();
  }

  static String svg(String svg) {
    var whole = svg.contains("xmlns=") ? svg : svg.replaceFirst("<svg\\b", "<svg " + NAMESPACE);
    return url(
        "image/svg+xml",
        Base64.getEncoder().encodeToString(whole.getBytes(StandardCharsets.UTF_8)));
  }

  /// @param base64 as nbformat has it, with line ends
  static String url(String type, String base64) {
    return "data:%s;base64,%s".formatted(type, base64.replaceAll("[^A-Za-z0-9+/=]", ""));
  }

  static String html(String url, String alt) {
    return "<img alt=\"%s\" src=\"%s\">".formatted(Escape.html(alt), url);
  }
}
