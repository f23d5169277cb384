package braid.launcher.notebook.report;

import java.util.regex.Pattern;

/// Text as HTML.
final class Escape {
  private static final Pattern TERMINAL =
      Pattern.compile("\u001b(\\[[0-9;?]*[ -/]*[@-~]|[@-Z\\\\-_])");

  private Escape() {}

  static String html(String text) {
    var out = new StringBuilder(text.length() + 16);
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      switch (c) {
        case '&' -> out.append("&amp;");
        case '<' -> out.append("&lt;");
        case '>' -> out.append("&gt;");
        case '"' -> out.append("&quot;");
        case '\'' -> out.append("&#39;");
        case '\n', '\t' -> out.append(c);
        default -> out.append(Character.isISOControl(c) ? '\ufffd' : c);
      }
    }
    return out.toString();
  }

  /// Returns the text as a terminal shows it, without colors. Of a line that `\r` overwrites, the
  /// last state is kept.
  static String printed(String text) {
    var plain = TERMINAL.matcher(text.replace("\r\n", "\n")).replaceAll("");
    if (plain.indexOf('\r') < 0) {
      return html(plain);
    }
    var lines = new StringBuilder();
    for (var line : plain.split("(?<=\n)", -1)) {
      var body = line.replaceFirst("\r+(?=\n?$)", "");
      lines.append(body.substring(body.lastIndexOf('\r') + 1));
    }
    return html(lines.toString());
  }
}
