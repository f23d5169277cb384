package braid.internal.report.progress;

import braid.internal.rank.Outbox;
import braid.model.MimeBundle;
import java.util.Collection;
import java.util.Iterator;
import java.util.UUID;

/// The items of a loop, whose progress is shown in one display. A loop that ends early leaves the
/// display as it is.
public final class ProgressLoop<T> implements Iterator<T> {
  private static final int MAX_ITEM_CHARS = 60;

  private final Iterator<T> items;
  private final Outbox outbox;
  private final String displayId = "progress-" + UUID.randomUUID();
  private final ProgressBar bar;
  private boolean shown;
  private boolean finished;

  /// @param work name of the items: `shapes`
  public ProgressLoop(Collection<T> items, String work, Outbox outbox) {
    this.items = items.iterator();
    this.outbox = outbox;
    bar = new ProgressBar(work, items.size(), "starting", System::nanoTime, this::show);
  }

  @Override
  public boolean hasNext() {
    boolean more = items.hasNext();
    if (!more && !finished) {
      finished = true;
      bar.finish("done");
    }
    return more;
  }

  @Override
  public T next() {
    var item = items.next();
    var line = String.valueOf(item).lines().findFirst().orElse("");
    bar.step(line.length() > MAX_ITEM_CHARS ? line.substring(0, MAX_ITEM_CHARS - 1) + "…" : line);
    return item;
  }

  private void show(MimeBundle bundle) {
    // Without a session a shown line cannot be replaced, and every update would add one.
    if (outbox.equals(Outbox.CONSOLE)) {
      return;
    }
    if (shown) {
      outbox.update(bundle, displayId);
    } else {
      outbox.display(bundle, displayId);
      shown = true;
    }
  }
}
