package braid;

import braid.internal.context.RankContext;
import braid.internal.evidence.HandedOver;
import braid.internal.rank.Outbox;
import braid.internal.report.Renderings;
import braid.model.BraidException;
import braid.model.Displayable;
import java.util.UUID;
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
  private final String id;

  private Display(String id) {
    this.id = id;
  }

  /// Shows a value as if it were a cell's result.
  public static Display display(@Nullable Object value) {
    return display(value, UUID.randomUUID().toString());
  }

  /// The same under a name, by which a later cell finds it.
  public static Display display(@Nullable Object value, String id) {
    if (id.isBlank()) {
      throw new BraidException("a display's id must name it but was blank; try \"progress\"");
    }
    outbox().display(HandedOver.onRank(value), id);
    return new Display(id);
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
