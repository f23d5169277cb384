package braid.launcher.notebook.report;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// The part of Markdown that notebooks are written in: headings, paragraphs, lists, fenced code,
/// quotes, tables; bold, italic, code and links. HTML in it is shown as text. A heading is two
/// levels lower than it says, since the page has headings of its own.
final class Markdown {
  private static final Pattern HEADING = Pattern.compile("(#{1,6})\\s+(.*?)\\s*#*");
  private static final Pattern ITEM = Pattern.compile("\\s*([-*+]|\\d+[.)])\\s+(.*)");
  private static final Pattern TABLE_RULE = Pattern.compile("\\s*\\|?[\\s:|-]*-[\\s:|-]*");
  private static final Pattern CODE = Pattern.compile("(`+)(.+?)\\1");
  private static final Pattern LINK = Pattern.compile("\\[([^\\]]*)\\]\\(([^)\\s]*)[^)]*\\)");

  private final List<String> lines;
  private final StringBuilder out = new StringBuilder();
  private int at;

  private Markdown(String text) {
    lines = text.lines().toList();
  }

  static String html(String text) {
    var markdown = new Markdown(text);
    while (markdown.at < markdown.lines.size()) {
      markdown.block();
    }
    return markdown.out.toString();
  }

  private void block() {
    var line = lines.get(at);
    var heading = HEADING.matcher(line);
    if (line.isBlank()) {
      at++;
    } else if (line.strip().startsWith("```")) {
      fenced();
    } else if (heading.matches()) {
      int level = Math.min(6, heading.group(1).length() + 2);
      out.append("<h%d>%s</h%d>\n".formatted(level, inline(heading.group(2)), level));
      at++;
    } else if (line.contains("|") && isTableRule(at + 1)) {
      table();
    } else if (ITEM.matcher(line).matches()) {
      list();
    } else if (line.startsWith(">")) {
      out.append("<blockquote>").append(inline(joined(">"))).append("</blockquote>\n");
    } else {
      paragraph();
    }
  }

  private boolean isTableRule(int index) {
    return index < lines.size()
        && lines.get(index).contains("|")
        && TABLE_RULE.matcher(lines.get(index)).matches();
  }

  private void fenced() {
    var code = new ArrayList<String>();
    for (at++; at < lines.size() && !lines.get(at).strip().startsWith("```"); at++) {
      code.add(lines.get(at));
    }
    at++;
    out.append("<pre class=\"code\">")
        .append(Escape.html(String.join("\n", code)))
        .append("</pre>\n");
  }

  private String joined(String prefix) {
    var text = new ArrayList<String>();
    for (; at < lines.size() && lines.get(at).startsWith(prefix); at++) {
      text.add(lines.get(at).substring(prefix.length()).strip());
    }
    return String.join(" ", text);
  }

  private void paragraph() {
    var text = new ArrayList<String>();
    do {
      text.add(lines.get(at++));
    } while (at < lines.size() && !beginsBlock(at));
    out.append("<p>").append(inline(String.join("\n", text))).append("</p>\n");
  }

  private boolean beginsBlock(int index) {
    var line = lines.get(index);
    return line.isBlank()
        || line.strip().startsWith("```")
        || HEADING.matcher(line).matches()
        || ITEM.matcher(line).matches();
  }

  private void list() {
    boolean numbered = Character.isDigit(lines.get(at).strip().charAt(0));
    out.append(numbered ? "<ol>\n" : "<ul>\n");
    while (at < lines.size()) {
      var item = ITEM.matcher(lines.get(at));
      if (!item.matches()) {
        break;
      }
      var text = new StringBuilder(item.group(2));
      for (at++; at < lines.size() && !beginsBlock(at); at++) {
        text.append('\n').append(lines.get(at).strip());
      }
      out.append("<li>").append(inline(text.toString())).append("</li>\n");
    }
    out.append(numbered ? "</ol>\n" : "</ul>\n");
  }

  private void table() {
    out.append("<table><thead>");
    row("th", lines.get(at));
    out.append("</thead><tbody>");
    for (at += 2; at < lines.size() && lines.get(at).contains("|"); at++) {
      row("td", lines.get(at));
    }
    out.append("</tbody></table>\n");
  }

  private void row(String element, String line) {
    var cells = line.strip().replaceFirst("^\\|", "").replaceFirst("\\|$", "").split("\\|", -1);
    out.append("<tr>")
        .append(
            Arrays.stream(cells)
                .map(cell -> "<%s>%s</%s>".formatted(element, inline(cell.strip()), element))
                .collect(Collectors.joining()))
        .append("</tr>");
  }

  /// Code is taken out first: nothing in it means anything.
  private static String inline(String text) {
    var html = new StringBuilder();
    var code = CODE.matcher(text);
    int at = 0;
    while (code.find()) {
      html.append(words(text.substring(at, code.start())));
      html.append("<code>").append(Escape.html(code.group(2).strip())).append("</code>");
      at = code.end();
    }
    return html.append(words(text.substring(at))).toString();
  }

  private static String words(String text) {
    var html = LINK.matcher(Escape.html(text)).replaceAll(Markdown::link);
    return html.replaceAll("(?s)\\*\\*(\\S.*?\\S|\\S)\\*\\*", "<strong>$1</strong>")
        .replaceAll("(?s)(?<![\\w*])\\*(\\S[^*]*?)\\*(?![\\w*])", "<em>$1</em>");
  }

  /// A page that is passed on has no files beside it: only links to the web are links.
  private static String link(MatchResult link) {
    var target = link.group(2);
    var html =
        target.matches("https?://.*")
            ? "<a rel=\"noreferrer noopener\" href=\"%s\">%s</a>".formatted(target, link.group(1))
            : link.group(1);
    return html.replace("\\", "\\\\").replace("$", "\\$");
  }
}
