package braid;

import braid.internal.context.RankContext;
import braid.internal.evidence.HandedOver;
import braid.internal.rank.Outbox;
import braid.internal.report.Renderings;
import braid.model.BraidException;
import braid.model.Displayable;
import java.util.UUID;
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
  private final String id;

  private Display(String id) {
    this.id = id;
  }

  /// Shows a value like the result of a cell.
  public static Display display(@Nullable Object value) {
    return display(value, UUID.randomUUID().toString());
  }

  /// Shows a value under a name, by which a later cell can update it.
  public static Display display(@Nullable Object value, String id) {
    if (id.isBlank()) {
      throw new BraidException("a display's id must name it but was blank; try \"progress\"");
    }
    outbox().display(HandedOver.onRank(value), id);
    return new Display(id);
  }

  /// Replaces the value shown under a name, in every cell of the notebook that shows it.
  public static void updateDisplay(String id, @Nullable Object value) {
    outbox().update(HandedOver.onRank(value), id);
  }

  /// Replaces the shown value.
  public void update(@Nullable Object value) {
    updateDisplay(id, value);
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
