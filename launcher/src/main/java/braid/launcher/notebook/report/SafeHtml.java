package braid.launcher.notebook.report;

import java.util.Arrays;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jsoup.Jsoup;
import org.jsoup.nodes.Attribute;
import org.jsoup.nodes.Document.OutputSettings.Syntax;
import org.jsoup.nodes.Element;
import org.jsoup.safety.Cleaner;
import org.jsoup.safety.Safelist;

/// Sanitizer for the HTML of an output, so that a page with it can be given to others. Elements
/// that lay out text, tables and pictures are kept and written again. Everything that could run
/// code, load something or be drawn outside of its place is dropped, and so is anything that is not
/// listed here.
final class SafeHtml {
  /// Elements that are dropped with their content. Of other elements that are not listed, the text
  /// is kept.
  private static final String DROPPED_WHOLE =
      "script, style, iframe, object, embed, noscript, template, textarea, title, math, select, xmp,"
          + " noembed, noframes, plaintext";

  /// Style declarations that Braid's tables use. None of them can move an element out of its place.
  private static final Pattern DECLARATION =
      Pattern.compile(
          "(?is)\\s*+(color|background|background-color|border[a-z-]*|padding[a-z-]*|margin[a-z-]*"
              + "|text-align|vertical-align|font-weight|font-style|font-size|font-family|opacity"
              + "|white-space|width|height|max-width|max-height|min-width|min-height|display"
              + "|float|overflow[a-z-]*|line-height|text-decoration)\\s*+:"
              + "(?!.*url\\()[\\w\\s#%.,()+-]*+");

  private static final Safelist KEPT =
      new Safelist() {
        @Override
        public boolean isSafeAttribute(String tag, Element element, Attribute attribute) {
          return super.isSafeAttribute(tag, element, attribute)
              && (!attribute.getKey().equals("src") || Picture.isPicture(attribute.getValue()));
        }
      }.addTags("a", "abbr", "b", "blockquote", "br", "caption", "code", "col", "colgroup", "dd")
          .addTags("details", "div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3")
          .addTags("h4", "h5", "h6", "hr", "i", "img", "kbd", "li", "meter", "ol", "p", "pre")
          .addTags("progress", "s", "small", "span", "strong", "sub", "summary", "sup", "table")
          .addTags("tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var")
          .addAttributes(":all", "align", "alt", "colspan", "dir", "height", "high", "lang", "low")
          .addAttributes(
              ":all", "max", "min", "open", "optimum", "role", "rowspan", "scope", "span")
          .addAttributes(":all", "start", "style", "title", "value", "width")
          .addAttributes("img", "src")
          .addAttributes("a", "href")
          .addProtocols("a", "href", "http", "https", "mailto")
          .addEnforcedAttribute("a", "rel", "noreferrer noopener");

  private SafeHtml() {}

  static String of(String html) {
    var dirty = Jsoup.parseBodyFragment(html);
    dirty.outputSettings().prettyPrint(false).syntax(Syntax.xml);
    for (var svg : dirty.select("svg:not(svg svg)")) {
      var picture = Picture.svg(svg.outerHtml());
      svg.replaceWith(new Element("img").attr("alt", "picture").attr("src", picture));
    }
    dirty.select(DROPPED_WHOLE).remove();
    for (var element : dirty.select("[style]")) {
      element.attr("style", style(element.attr("style")));
    }
    var clean = new Cleaner(KEPT).clean(dirty);
    clean.outputSettings().syntax(Syntax.html);
    return clean.body().html();
  }

  private static String style(String declarations) {
    return Arrays.stream(declarations.split(";", -1))
        .filter(declaration -> DECLARATION.matcher(declaration).matches())
        .map(String::strip)
        .collect(Collectors.joining(";"));
  }
}
