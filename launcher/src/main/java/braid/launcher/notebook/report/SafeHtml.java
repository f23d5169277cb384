package braid.launcher.notebook.report;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;

/// HTML of an output made fit for a page that people pass on: elements that lay out text, tables
/// and pictures stay, written anew; whatever could run, load or leave its place goes. What is not
/// known to be harmless is taken for harmful.
final class SafeHtml {
  private static final Set<String> ELEMENTS =
      Set.of(
          "a",
          "abbr",
          "b",
          "blockquote",
          "br",
          "caption",
          "code",
          "col",
          "colgroup",
          "dd",
          "details",
          "div",
          "dl",
          "dt",
          "em",
          "figcaption",
          "figure",
          "h1",
          "h2",
          "h3",
          "h4",
          "h5",
          "h6",
          "hr",
          "i",
          "img",
          "kbd",
          "li",
          "meter",
          "ol",
          "p",
          "pre",
          "progress",
          "s",
          "small",
          "span",
          "strong",
          "sub",
          "summary",
          "sup",
          "table",
          "tbody",
          "td",
          "tfoot",
          "th",
          "thead",
          "tr",
          "u",
          "ul",
          "var");

  private static final Set<String> WITHOUT_END = Set.of("br", "col", "hr", "img");

  /// Their content is no text to read either.
  private static final Set<String> DROPPED_WHOLE =
      Set.of(
          "script",
          "style",
          "iframe",
          "object",
          "embed",
          "noscript",
          "template",
          "textarea",
          "title",
          "math",
          "select",
          "xmp",
          "noembed",
          "noframes",
          "plaintext");

  private static final Set<String> ATTRIBUTES =
      Set.of(
          "align", "alt", "colspan", "dir", "height", "high", "lang", "low", "max", "min", "open",
          "optimum", "role", "rowspan", "scope", "span", "start", "title", "value", "width");

  private static final Pattern TAG =
      Pattern.compile("<(/?)([A-Za-z][A-Za-z0-9-]*)((?:[^>\"']++|\"[^\"]*+\"|'[^']*+')*+)>");
  private static final Pattern ATTRIBUTE =
      Pattern.compile("([^\\s=/\"'>]+)(?:\\s*=\\s*(?:\"([^\"]*)\"|'([^']*)'|([^\\s\"'>]+)))?");
  private static final Pattern COMMENT = Pattern.compile("(?s)<!--.*?(-->|$)|<[!?][^>]*>");
  private static final Pattern PICTURE =
      Pattern.compile("data:image/(png|jpeg|gif|webp|svg\\+xml);base64,[A-Za-z0-9+/=\\s]*");
  private static final Pattern LINK = Pattern.compile("(?i)(https?://|mailto:).*");

  /// Declarations of the kind that our tables have; nothing that takes a place outside its own.
  private static final Pattern DECLARATION =
      Pattern.compile(
          "(?i)\\s*(color|background|background-color|border[a-z-]*|padding[a-z-]*|margin[a-z-]*"
              + "|text-align|vertical-align|font-weight|font-style|font-size|font-family|opacity"
              + "|white-space|width|height|max-width|max-height|min-width|min-height|display"
              + "|float|overflow[a-z-]*|line-height|text-decoration)\\s*:\\s*[\\w\\s#%.,()+-]*");

  private final StringBuilder out = new StringBuilder();
  private final Deque<String> open = new ArrayDeque<>();

  private SafeHtml() {}

  static String of(String html) {
    var safe = new SafeHtml();
    safe.read(COMMENT.matcher(html).replaceAll(""));
    return safe.out.toString();
  }

  private void read(String html) {
    var tag = TAG.matcher(html);
    int at = 0;
    while (at < html.length() && tag.find(at)) {
      text(html.substring(at, tag.start()));
      var name = tag.group(2).toLowerCase(Locale.ROOT);
      boolean end = !tag.group(1).isEmpty();
      at = tag.end();
      if (name.equals("svg") && !end) {
        at = afterEnd(html, name, at);
        out.append(Picture.svg(html.substring(tag.start(), at), "picture"));
      } else if (DROPPED_WHOLE.contains(name)) {
        at = end ? at : afterEnd(html, name, at);
      } else if (ELEMENTS.contains(name)) {
        if (end) {
          close(name);
        } else {
          open(name, tag.group(3));
        }
      }
    }
    text(html.substring(Math.min(at, html.length())));
    while (!open.isEmpty()) {
      out.append("</").append(open.pop()).append('>');
    }
  }

  private static int afterEnd(String html, String name, int from) {
    var end = Pattern.compile("(?i)</" + name + "\\b[^>]*>").matcher(html);
    return end.find(from) ? end.end() : html.length();
  }

  /// Character references stay what they are; a `<` that begins no tag is one.
  private void text(String text) {
    out.append(text.replace("<", "&lt;").replace(">", "&gt;"));
  }

  private void open(String name, String attributes) {
    out.append('<').append(name);
    var attribute = ATTRIBUTE.matcher(attributes);
    while (attribute.find()) {
      var value =
          attribute.group(2) != null
              ? attribute.group(2)
              : attribute.group(3) != null ? attribute.group(3) : attribute.group(4);
      attribute(name, attribute.group(1).toLowerCase(Locale.ROOT), value == null ? "" : value);
    }
    out.append('>');
    if (!WITHOUT_END.contains(name)) {
      open.push(name);
    }
  }

  private void attribute(String element, String name, String value) {
    switch (name) {
      case "style" -> write("style", style(value));
      case "src" -> {
        if (element.equals("img") && PICTURE.matcher(value).matches()) {
          write("src", value);
        }
      }
      case "href" -> {
        if (element.equals("a") && LINK.matcher(value).matches()) {
          write("href", value);
          out.append(" rel=\"noreferrer noopener\"");
        }
      }
      default -> {
        if (ATTRIBUTES.contains(name)) {
          write(name, value);
        }
      }
    }
  }

  private void write(String name, String value) {
    out.append(' ').append(name).append("=\"");
    out.append(value.replace("\"", "&quot;").replace("<", "&lt;").replace(">", "&gt;"));
    out.append('"');
  }

  private static String style(String value) {
    var kept = new StringBuilder();
    for (var declaration : value.split(";", -1)) {
      if (DECLARATION.matcher(declaration).matches()
          && !declaration.toLowerCase(Locale.ROOT).contains("url(")) {
        kept.append(kept.isEmpty() ? "" : ";").append(declaration.strip());
      }
    }
    return kept.toString();
  }

  /// An end closes what is open within; one without a beginning is left out, so that no output can
  /// close what is around it.
  private void close(String name) {
    if (!open.contains(name)) {
      return;
    }
    String closed;
    do {
      closed = open.pop();
      out.append("</").append(closed).append('>');
    } while (!closed.equals(name));
  }
}
