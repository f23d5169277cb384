package braid;

import braid.internal.context.RankContext;
import braid.internal.evidence.RankValues;
import braid.internal.rank.Outbox;
import braid.internal.report.Renderings;
import braid.internal.report.progress.ProgressBar;
import braid.model.BraidException;
import braid.model.Displayable;
import braid.model.MimeBundle;
import java.util.Collection;
import java.util.UUID;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// A value that a cell shows before it ends, and may replace while it runs:
///
/// ```
/// var loss = display("not begun");
/// for (int step = 0; step < 100; step++) loss.update("step " + step);
/// ```
///
/// Every rank may call it; `%output` selects the ranks whose output is shown, by default rank 0.
public final class Display {
  private static final Pattern MIME_TYPE =
      Pattern.compile("(text|image|application)/[\\w.+-]+", Pattern.CASE_INSENSITIVE);

  private final String id;

  private Display(String id) {
    this.id = id;
  }

  /// Shows a value like the result of a cell.
  public static Display display(@Nullable Object value) {
    return display(value, UUID.randomUUID().toString());
  }

  /// Shows a value under a name, by which a later cell can update it, or as content of a MIME type:
  /// `display("<b>4 splits</b>", "text/html")`.
  ///
  /// @param idOrType a MIME type of text, image or application, such as `text/html`; else an id
  public static Display display(@Nullable Object value, String idOrType) {
    Given.check("idOrType", idOrType);
    if (idOrType.isBlank()) {
      throw new BraidException("a display's id must name it but was blank; try \"progress\"");
    }
    if (MIME_TYPE.matcher(idOrType).matches()) {
      return display(as(idOrType, String.valueOf(value)));
    }
    outbox().display(RankValues.bundle(value), idOrType);
    return new Display(idOrType);
  }

  /// Returns HTML as a value: the result of a cell, or to be displayed.
  public static MimeBundle html(String html) {
    Given.check("html", html);
    return as(MimeBundle.HTML, html);
  }

  /// Returns Markdown as a value.
  public static MimeBundle markdown(String markdown) {
    Given.check("markdown", markdown);
    return as(MimeBundle.MARKDOWN, markdown);
  }

  /// Returns an SVG drawing as a value.
  public static MimeBundle svg(String svg) {
    Given.check("svg", svg);
    return as(MimeBundle.SVG, svg);
  }

  /// Returns content with plain text, for displays that do not support the type, such as a
  /// terminal.
  private static MimeBundle as(String type, String content) {
    return MimeBundle.text(content).with(type, content);
  }

  /// Replaces the value shown under a name, in every cell of the notebook that shows it.
  public static void updateDisplay(String id, @Nullable Object value) {
    Given.check("id", id);
    outbox().update(RankValues.bundle(value), id);
  }

  /// Replaces the shown value.
  public void update(@Nullable Object value) {
    updateDisplay(id, value);
  }

  /// Returns the items for a loop whose progress is shown in one display, in cells on the ranks and
  /// in `%%front` cells:
  ///
  /// ```
  /// for (var spec : progress(specs, "shapes")) Tuner.on(world).gemm(spec).run();
  /// ```
  ///
  /// @param subject name of the items
  public static <T> Iterable<T> progress(Collection<T> items, String subject) {
    Given.check("items", items);
    Given.check("subject", subject);
    return () -> ProgressBar.loop(items, subject, outbox());
  }

  /// Wraps a value so that all of it is shown, not only its first rows or elements.
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
