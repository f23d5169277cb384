package braid;

import braid.internal.context.RankContext;
import braid.internal.evidence.HandedOver;
import braid.internal.rank.Outbox;
import braid.internal.report.Renderings;
import braid.model.BraidException;
import braid.model.Displayable;
import braid.model.MimeBundle;
import java.util.UUID;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Something that a cell shows before it ends, and may replace while it runs:
///
/// ```
/// var loss = display("not begun");
/// for (int step = 0; step < 100; step++) loss.update("step " + step);
/// ```
///
/// Every rank may show; which ranks' are seen is `%output`'s to say, rank 0's by default.
public final class Display {
  private static final Pattern MIME_TYPE =
      Pattern.compile("(text|image|application)/[\\w.+-]+", Pattern.CASE_INSENSITIVE);

  private final String id;

  private Display(String id) {
    this.id = id;
  }

  /// Shows a value as if it were a cell's result.
  public static Display display(@Nullable Object value) {
    return display(value, UUID.randomUUID().toString());
  }

  /// Shows a value under a name, by which a later cell finds it, or as content of a MIME type:
  /// `display("<b>4 splits</b>", "text/html")`.
  ///
  /// @param idOrType a MIME type of text, image or application, such as `text/html`; else an id
  public static Display display(@Nullable Object value, String idOrType) {
    if (idOrType.isBlank()) {
      throw new BraidException("a display's id must name it but was blank; try \"progress\"");
    }
    if (MIME_TYPE.matcher(idOrType).matches()) {
      return display(as(idOrType, String.valueOf(value)));
    }
    outbox().display(HandedOver.onRank(value), idOrType);
    return new Display(idOrType);
  }

  /// HTML as a value: the result of a cell, or to be displayed.
  public static MimeBundle html(String html) {
    return as(MimeBundle.HTML, html);
  }

  /// Markdown as a value.
  public static MimeBundle markdown(String markdown) {
    return as(MimeBundle.MARKDOWN, markdown);
  }

  /// An SVG drawing as a value.
  public static MimeBundle svg(String svg) {
    return as(MimeBundle.SVG, svg);
  }

  /// Plain text is shown where the type is not known, such as in a terminal.
  private static MimeBundle as(String type, String content) {
    return MimeBundle.text(content).with(type, content);
  }

  /// Replaces what was shown under that name, wherever in the notebook it stands.
  public static void updateDisplay(String id, @Nullable Object value) {
    outbox().update(HandedOver.onRank(value), id);
  }

  /// Replaces what is shown.
  public void update(@Nullable Object value) {
    updateDisplay(id, value);
  }

  /// A value to be shown with all it has, instead of its first rows or elements.
  public static Displayable whole(@Nullable Object value) {
    return () -> Renderings.whole(value);
  }

  private static Outbox outbox() {
    var ofThread = Outbox.OF_THREAD.get();
    return ofThread != null ? ofThread : RankContext.current().outbox();
  }

  @Override
  public String toString() {
    return "display " + id;
  }
}
