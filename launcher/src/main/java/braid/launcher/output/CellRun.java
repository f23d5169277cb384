package braid.launcher.output;

import braid.MimeBundle;
import braid.launcher.cell.CellOutput;
import braid.launcher.ranks.RankEvent;
import braid.launcher.ranks.RankEvent.Channel;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/// One cell's output on its way from the ranks to whoever shows it: merged, in order, and
/// coalesced, because front ends choke on a message a line.
public final class CellRun {
  private sealed interface Item {
    record Text(Channel channel, StringBuilder text) implements Item {}

    record Shown(MimeBundle bundle, String displayId, boolean update) implements Item {}
  }

  private final CellOutput output;
  private final OutputMerger merger;
  private final ArrayDeque<Item> queue = new ArrayDeque<>();
  private final Object delivery = new Object();

  public CellRun(CellOutput output, int ranks, boolean rankZeroTakesPart) {
    this.output = output;
    merger = new OutputMerger(ranks, rankZeroTakesPart, this::text);
  }

  public void printed(RankEvent.Output event) {
    merger.accept(event.rank(), event.channel(), event.text(), System.nanoTime());
  }

  /// Text of the session itself.
  public void text(Channel channel, String text) {
    synchronized (queue) {
      if (queue.peekLast() instanceof Item.Text last && last.channel == channel) {
        last.text.append(text);
      } else {
        queue.add(new Item.Text(channel, new StringBuilder(text)));
      }
    }
  }

  public void shown(MimeBundle bundle, String displayId, boolean update) {
    synchronized (queue) {
      queue.add(new Item.Shown(bundle, displayId, update));
    }
  }

  public CellOutput output() {
    return output;
  }

  /// Delivers what has gathered. Called every now and then, and at the end of the cell.
  public void deliver() {
    merger.tick(System.nanoTime());
    synchronized (delivery) {
      for (var item = next(); item != null; item = next()) {
        switch (item) {
          case Item.Text(var channel, var text) when channel == Channel.STDOUT ->
              output.stdout(text.toString());
          case Item.Text(var channel, var text) -> output.stderr(text.toString());
          case Item.Shown(var bundle, var id, var update) when update -> output.update(bundle, id);
          case Item.Shown(var bundle, var id, var update) -> output.display(bundle, id);
        }
      }
    }
  }

  public void finish() {
    merger.finish();
    deliver();
  }

  private @Nullable Item next() {
    synchronized (queue) {
      return queue.poll();
    }
  }
}
