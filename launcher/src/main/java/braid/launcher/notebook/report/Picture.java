package braid.launcher.notebook.report;

import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/// An image within the page, as the URL that holds its bytes. SVG becomes an image too: an image
/// cannot run anything, and its ids do not meet those of the next one.
final class Picture {
  private static final String NAMESPACE = "xmlns=\"http://www.w3.org/2000/svg\"";
  private static final Pattern URL =
      Pattern.compile("data:image/(png|jpeg|gif|webp|svg\\+xml);base64,[A-Za-z0-9+/=\\s]*");

  private static final Map<String, String> TYPES =
      Map.of(
          "png", "png", "jpg", "jpeg", "jpeg", "jpeg", "gif", "gif", "webp", "webp", "svg",
          "svg+xml");

  private static final Pattern ENDING = Pattern.compile("(?i)[^:]+\\.(png|jpe?g|gif|webp|svg)");
  private static final long MOST_BYTES = 8 << 20;

  private Picture() {}

  /// Returns the image file as a URL that holds its bytes; empty if there is no such image within
  /// the folder.
  ///
  /// @param reference path relative to the folder, as Markdown has it
  static Optional<String> file(Path folder, String reference) {
    var ending = ENDING.matcher(reference);
    if (!ending.matches()) {
      return Optional.empty();
    }
    try {
      var file = folder.resolve(URLDecoder.decode(reference, StandardCharsets.UTF_8)).toRealPath();
      if (!file.startsWith(folder.toRealPath()) || Files.size(file) > MOST_BYTES) {
        return Optional.empty();
      }
      var type = TYPES.getOrDefault(ending.group(1).toLowerCase(Locale.ROOT), "");
      return Optional.of(
          url("image/" + type, Base64.getEncoder().encodeToString(Files.readAllBytes(file))));
    } catch (IOException | IllegalArgumentException e) {
      return Optional.empty(); // the page shows the description instead
    }
  }

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
