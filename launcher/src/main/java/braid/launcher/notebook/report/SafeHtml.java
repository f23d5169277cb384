package braid.launcher.notebook.report;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
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

  private static final Pattern TAG_NAME = Pattern.compile("<(/?)([A-Za-z][A-Za-z0-9-]*+)");
  private static final Pattern ATTRIBUTE =
      Pattern.compile("([^\\s=/\"'>]+)(?:\\s*=\\s*(?:\"([^\"]*)\"|'([^']*)'|([^\\s\"'>]+)))?");
  private static final Pattern PICTURE =
      Pattern.compile("data:image/(png|jpeg|gif|webp|svg\\+xml);base64,[A-Za-z0-9+/=\\s]*");
  private static final Pattern LINK = Pattern.compile("(?i)(https?://|mailto:).*");

  /// Declarations of the kind that our tables have; nothing that takes a place outside its own.
  private static final Pattern DECLARATION =
      Pattern.compile(
          "(?i)\\s*+(color|background|background-color|border[a-z-]*|padding[a-z-]*|margin[a-z-]*"
              + "|text-align|vertical-align|font-weight|font-style|font-size|font-family|opacity"
              + "|white-space|width|height|max-width|max-height|min-width|min-height|display"
              + "|float|overflow[a-z-]*|line-height|text-decoration)\\s*+:[\\w\\s#%.,()+-]*+");

  private final StringBuilder out = new StringBuilder();
  private final Deque<String> open = new ArrayDeque<>();
  private final Map<String, Integer> depths = new HashMap<>();

  private SafeHtml() {}

  static String of(String html) {
    var safe = new SafeHtml();
    safe.read(withoutComments(html));
    return safe.out.toString();
  }

  /// Comments, declarations and processing instructions are left out. A comment without an end
  /// reaches to the end of the text.
  private static String withoutComments(String html) {
    var kept = new StringBuilder();
    int lastEnd = html.lastIndexOf('>');
    int at = 0;
    int from = 0;
    for (int mark = html.indexOf('<'); mark >= 0; mark = html.indexOf('<', from)) {
      from = mark + 1;
      if (html.startsWith("<!--", mark)) {
        int end = html.indexOf("-->", mark + 4);
        from = end < 0 ? html.length() : end + 3;
      } else if ((html.startsWith("!", from) || html.startsWith("?", from)) && mark < lastEnd) {
        from = html.indexOf('>', mark) + 1;
      } else {
        continue;
      }
      kept.append(html, at, mark);
      at = from;
    }
    return kept.append(html, at, html.length()).toString();
  }

  private void read(String html) {
    var ends = tagEnds(html);
    var tag = TAG_NAME.matcher(html);
    int at = 0;
    int from = 0;
    while (from < html.length() && tag.find(from)) {
      int last = ends[tag.end()];
      if (last < 0) {
        from = tag.end();
        continue;
      }
      text(html.substring(at, tag.start()));
      var name = tag.group(2).toLowerCase(Locale.ROOT);
      boolean end = !tag.group(1).isEmpty();
      at = last + 1;
      if (name.equals("svg") && !end) {
        at = afterEnd(html, name, at);
        out.append(Picture.svg(html.substring(tag.start(), at), "picture"));
      } else if (DROPPED_WHOLE.contains(name)) {
        at = end ? at : afterEnd(html, name, at);
      } else if (ELEMENTS.contains(name)) {
        if (end) {
          close(name);
        } else {
          open(name, html.substring(tag.end(), last));
        }
      }
      from = at;
    }
    text(html.substring(at));
    while (!open.isEmpty()) {
      closeInnermost();
    }
  }

  /// For each position, read as one within a tag and outside quotes, where that tag ends: at the
  /// first `>` outside quotes; -1 where there is none. Found from the end backwards, so that text
  /// with many beginnings of tags is not searched from each of them.
  private static int[] tagEnds(String html) {
    var ends = new int[html.length() + 1];
    ends[html.length()] = -1;
    int doubleQuote = -1;
    int singleQuote = -1;
    for (int i = html.length() - 1; i >= 0; i--) {
      switch (html.charAt(i)) {
        case '>' -> ends[i] = i;
        case '"' -> {
          ends[i] = doubleQuote < 0 ? -1 : ends[doubleQuote + 1];
          doubleQuote = i;
        }
        case '\'' -> {
          ends[i] = singleQuote < 0 ? -1 : ends[singleQuote + 1];
          singleQuote = i;
        }
        default -> ends[i] = ends[i + 1];
      }
    }
    return ends;
  }

  /// The position after the element's end tag; the end of the text if it has none.
  private static int afterEnd(String html, String name, int from) {
    var end = Pattern.compile("(?i)</" + name + "\\b").matcher(html);
    int close = end.find(from) ? html.indexOf('>', end.end()) : -1;
    return close < 0 ? html.length() : close + 1;
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
      depths.merge(name, 1, Integer::sum);
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
    if (depths.getOrDefault(name, 0) == 0) {
      return;
    }
    String closed;
    do {
      closed = closeInnermost();
    } while (!closed.equals(name));
  }

  private String closeInnermost() {
    var name = open.pop();
    depths.merge(name, -1, Integer::sum);
    out.append("</").append(name).append('>');
    return name;
  }
}
