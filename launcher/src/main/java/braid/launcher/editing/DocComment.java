package braid.launcher.editing;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// A doc comment of either kind as Markdown and as plain text; HTML and javadoc tags are converted.
final class DocComment {
  private static final Pattern RETURN = Pattern.compile("\\{@return\\s+([^{}]*)}");
  private static final Pattern CODE = Pattern.compile("\\{@(?:code|literal|value)\\s*([^{}]*)}");
  private static final Pattern LINK =
      Pattern.compile("\\{@link(?:plain)?\\s+([^\\s{}]+(?:\\([^)]*\\))?)\\s*([^{}]*)}");
  private static final Pattern INLINE = Pattern.compile("\\{@\\w+\\s*([^{}]*)}");
  private static final Pattern REFERENCE =
      Pattern.compile("(?<!])\\[([\\w.]*#?[\\w.]+(?:\\([^)]*\\))?)](?![(\\[])");
  private static final Pattern PREFORMATTED = Pattern.compile("(?is)<pre[^>]*>(.*?)</pre>");
  private static final Pattern TAG = Pattern.compile("</?[A-Za-z][^<>]*>");
  private static final Pattern BLOCK_TAG = Pattern.compile("@(\\w+)\\s*(.*)", Pattern.DOTALL);

  /// Indent of preformatted text.
  private static final String CODE_INDENT = "    ";

  private static final Pattern ITEM = Pattern.compile("\\s*(?:[-*|] |\\d+\\. )");
  private static final Pattern FIRST_SENTENCE = Pattern.compile("(?s)(.*?[.:;])(?:\\s|$).*");

  private final List<String> paragraphs = new ArrayList<>();
  private final List<String> tags = new ArrayList<>();

  private DocComment() {}

  static DocComment of(String raw) {
    var comment = new DocComment();
    var body = new StringBuilder();
    var tag = new StringBuilder();
    for (var line : raw.lines().map(DocComment::unindented).toList()) {
      if (line.strip().startsWith("@")) {
        comment.addTag(tag.toString());
        tag.setLength(0);
        tag.append(line.strip()).append(' ');
      } else if (!tag.isEmpty()) {
        tag.append(line.strip()).append(' ');
      } else {
        body.append(line).append('\n');
      }
    }
    comment.addTag(tag.toString());
    comment.addBody(body.toString());
    return comment;
  }

  private static String unindented(String line) {
    return line.startsWith(" ") ? line.substring(1) : line;
  }

  private void addBody(String body) {
    for (var paragraph : html(inline(body)).split("\n[ \t]*\n+", -1)) {
      var text = paragraph.stripTrailing();
      if (!text.isBlank()) {
        paragraphs.add(text.startsWith("    ") ? text : text.strip());
      }
    }
  }

  private void addTag(String written) {
    Matcher tag = BLOCK_TAG.matcher(written.strip());
    if (!tag.matches()) {
      return;
    }
    var description = html(inline(tag.group(2))).strip().replaceAll("\\s+", " ");
    var words = description.split(" ", 2);
    var rest = words.length > 1 ? ": " + words[1] : "";
    switch (tag.group(1)) {
      case "param" -> tags.add("`" + words[0] + "`" + rest);
      case "return" -> tags.add("returns " + description);
      case "throws", "exception" -> tags.add("throws `" + words[0] + "`" + rest);
      case "see" -> tags.add("see " + description);
      case "since", "author", "version", "serial", "spec", "jls" -> {}
      default -> tags.add(description);
    }
  }

  private static String inline(String text) {
    var converted = RETURN.matcher(text).replaceAll("Returns $1.");
    converted = CODE.matcher(converted).replaceAll("`$1`");
    converted =
        LINK.matcher(converted)
            .replaceAll(
                link ->
                    Matcher.quoteReplacement(
                        link.group(2).isBlank() ? quoted(link.group(1)) : link.group(2)));
    converted = INLINE.matcher(converted).replaceAll("$1");
    return REFERENCE
        .matcher(converted)
        .replaceAll(link -> Matcher.quoteReplacement(quoted(link.group(1))));
  }

  private static String quoted(String reference) {
    var name = reference.startsWith("#") ? reference.substring(1) : reference.replace('#', '.');
    return "`" + name + "`";
  }

  private static String html(String text) {
    var converted =
        PREFORMATTED
            .matcher(text)
            .replaceAll(
                block ->
                    Matcher.quoteReplacement(
                        "\n\n"
                            + block.group(1).stripIndent().strip().indent(4).stripTrailing()
                            + "\n\n"));
    converted = converted.replaceAll("(?i)<(?:p|blockquote|/p|h[1-6])\\b[^>]*>", "\n\n");
    converted = converted.replaceAll("(?i)</?(?:ul|ol|dl)\\b[^>]*>|</h[1-6]>", "\n\n");
    converted = converted.replaceAll("(?i)\\s*<(?:li|dt|dd)\\b[^>]*>\\s*", "\n- ");
    converted = converted.replaceAll("(?i)</?(?:code|tt)>", "`");
    converted = TAG.matcher(converted).replaceAll("");
    return converted
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&nbsp;", " ")
        .replace("&quot;", "\"")
        .replace("&amp;", "&");
  }

  String markdown() {
    return joined(paragraphs, "- ");
  }

  /// Returns plain text for a pager, indented relative to the signature. Prose and items of lists
  /// are one line each, for the reader to wrap; code is indented.
  String plain() {
    return joined(paragraphs.stream().map(DocComment::unwrapped).toList(), "  ").replace("`", "");
  }

  private static String unwrapped(String paragraph) {
    var lines = new ArrayList<String>();
    boolean isCode = paragraph.startsWith(CODE_INDENT);
    boolean isOpen = false;
    for (var line : paragraph.lines().toList()) {
      if (line.strip().startsWith("```")) {
        isCode = !isCode;
        isOpen = false;
      } else if (isCode) {
        lines.add(line.startsWith(CODE_INDENT) ? line : CODE_INDENT + line);
      } else if (isOpen && !ITEM.matcher(line).lookingAt()) {
        lines.set(lines.size() - 1, lines.getLast() + " " + line.strip());
      } else {
        lines.add(line.strip());
        isOpen = true;
      }
    }
    return String.join("\n", lines);
  }

  /// Returns the first sentence, for places without room for more.
  String firstSentence() {
    if (paragraphs.isEmpty()) {
      return "";
    }
    var text = paragraphs.getFirst().replaceAll("\\s+", " ");
    var sentence = FIRST_SENTENCE.matcher(text);
    return sentence.matches() ? sentence.group(1) : text;
  }

  private String joined(List<String> body, String bullet) {
    var all = new ArrayList<>(body);
    if (!tags.isEmpty()) {
      all.add(bullet + String.join("\n" + bullet, tags));
    }
    return String.join("\n\n", all);
  }
}
