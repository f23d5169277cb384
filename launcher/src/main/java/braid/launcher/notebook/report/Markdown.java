package braid.launcher.notebook.report;

import com.google.gson.JsonObject;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import org.commonmark.Extension;
import org.commonmark.ext.gfm.tables.TablesExtension;
import org.commonmark.node.AbstractVisitor;
import org.commonmark.node.Code;
import org.commonmark.node.Heading;
import org.commonmark.node.HtmlInline;
import org.commonmark.node.Image;
import org.commonmark.node.Link;
import org.commonmark.node.Node;
import org.commonmark.node.SoftLineBreak;
import org.commonmark.node.Text;
import org.commonmark.parser.Parser;
import org.commonmark.renderer.html.HtmlRenderer;

/// Markdown of notebooks as HTML for a page that has no files beside it. HTML in it is shown as
/// text, and only links to the web stay links. Headings are two levels lower, since the page has
/// headings of its own.
final class Markdown extends AbstractVisitor {
  private static final Pattern WEB = Pattern.compile("(?i)(https?://|mailto:).*");
  private static final String ATTACHMENT = "attachment:";
  private static final List<Extension> EXTENSIONS = List.of(TablesExtension.create());

  /// Limits on nesting keep the stack shallow, whatever the text.
  private static final Parser PARSER =
      Parser.builder()
          .extensions(EXTENSIONS)
          .maxOpenBlockParsers(100)
          .maxInlineNesting(100)
          .build();

  private static final HtmlRenderer RENDERER =
      HtmlRenderer.builder()
          .extensions(EXTENSIONS)
          .escapeHtml(true)
          .sanitizeUrls(true)
          .attributeProviderFactory(
              context ->
                  (node, tag, attributes) ->
                      attributes.replace("rel", "nofollow", "noreferrer noopener"))
          .build();

  private final JsonObject attachments;
  private final Optional<Path> folder;

  private Markdown(JsonObject attachments, Optional<Path> folder) {
    this.attachments = attachments;
    this.folder = folder;
  }

  /// Returns the text of the first heading; empty if there is none.
  static Optional<String> heading(String text) {
    for (var node = PARSER.parse(text).getFirstChild(); node != null; node = node.getNext()) {
      if (node instanceof Heading) {
        return Optional.of(text(node).strip()).filter(heading -> !heading.isEmpty());
      }
    }
    return Optional.empty();
  }

  private static String text(Node node) {
    return switch (node) {
      case Text text -> text.getLiteral();
      case Code code -> code.getLiteral();
      case HtmlInline html -> html.getLiteral();
      case SoftLineBreak _ -> " ";
      default -> {
        var text = new StringBuilder();
        for (var child = node.getFirstChild(); child != null; child = child.getNext()) {
          text.append(text(child));
        }
        yield text.toString();
      }
    };
  }

  static String html(String text) {
    return html(text, new Markdown(new JsonObject(), Optional.empty()));
  }

  /// @param attachments images of the cell by name, as nbformat has them: MIME type to base64
  /// @param folder folder of image files
  static String html(String text, JsonObject attachments, Path folder) {
    return html(text, new Markdown(attachments, Optional.of(folder)));
  }

  private static String html(String text, Markdown visitor) {
    var document = PARSER.parse(text);
    document.accept(visitor);
    return RENDERER.render(document);
  }

  @Override
  public void visit(Heading heading) {
    heading.setLevel(Math.min(6, heading.getLevel() + 2));
    visitChildren(heading);
  }

  @Override
  public void visit(Link link) {
    visitChildren(link);
    if (!WEB.matcher(link.getDestination()).matches()) {
      replaceByChildren(link);
    }
  }

  /// An image that is neither in the notebook nor a file beside it becomes its description: the
  /// page loads nothing.
  @Override
  public void visit(Image image) {
    visitChildren(image);
    if (image.getDestination().startsWith(ATTACHMENT)) {
      image.setDestination(attached(image.getDestination().substring(ATTACHMENT.length())));
    }
    folder
        .flatMap(beside -> Picture.file(beside, image.getDestination()))
        .ifPresent(image::setDestination);
    if (!Picture.isPicture(image.getDestination())) {
      replaceByChildren(image);
    }
  }

  private String attached(String name) {
    return attachments.get(name) instanceof JsonObject types && !types.isEmpty()
        ? types.entrySet().stream()
            .map(type -> Picture.url(type.getKey(), OutputHtml.text(type.getValue())))
            .filter(Picture::isPicture)
            .findFirst()
            .orElse("")
        : "";
  }

  private static void replaceByChildren(Node node) {
    while (node.getFirstChild() != null) {
      node.insertBefore(node.getFirstChild());
    }
    node.unlink();
  }
}
