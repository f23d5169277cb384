package braid.launcher.output;

import braid.MimeBundle;
import braid.launcher.cell.CellOutput;
import braid.launcher.ranks.RankEvent;
import braid.launcher.ranks.RankEvent.Channel;
import braid.launcher.ranks.RankProcess;
import braid.launcher.wire.ToRank;
import java.io.IOException;
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
  private final int ranks;
  private final int first;
  private volatile OutputMode mode;
  private volatile OutputMerger merger;
  private final ArrayDeque<Item> queue = new ArrayDeque<>();
  private final Object delivery = new Object();

  /// `first` is the lowest rank that runs this cell.
  public CellRun(CellOutput output, int ranks, int first, OutputMode mode) {
    this.output = output;
    this.ranks = ranks;
    this.first = first;
    this.mode = mode;
    merger = new OutputMerger(ranks, first, mode, this::text);
  }

  /// What comes from here on is shown so.
  public void mode(OutputMode next) {
    merger.finish();
    mode = next;
    merger = new OutputMerger(ranks, first, next, this::text);
  }

  public OutputMode mode() {
    return mode;
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

  /// Something a rank shows: the first one's, or each one's with its rank.
  public void shown(RankEvent.Displayed event) {
    if (mode == OutputMode.ALL && ranks > 1) {
      var id = event.displayId();
      add(
          new Item.Shown(
              ResultMerger.labelled(event.rank(), event.bundle()),
              id.isEmpty() ? id : id + "-rank-" + event.rank(),
              event.update()));
    } else if (event.rank() == first) {
      add(new Item.Shown(event.bundle(), event.displayId(), event.update()));
    }
  }

  /// Something the front shows.
  public void shown(MimeBundle bundle, String displayId, boolean update) {
    add(new Item.Shown(bundle, displayId, update));
  }

  private void add(Item.Shown shown) {
    synchronized (queue) {
      queue.add(shown);
    }
  }

  /// Gets a rank the line it wants to read; where there is none to be had the rank's input ends,
  /// and the cell's stderr says why.
  ///
  /// @param run the cell that runs, if one does
  public static void ask(
      @Nullable CellRun run, RankProcess rank, RankEvent.InputRequested request) {
    try {
      if (run == null) {
        throw new IOException("no cell runs");
      }
      if (request.rank() != 0) {
        throw new IOException("only rank 0 can read from the user");
      }
      run.deliver();
      rank.tell(new ToRank.Input(run.output.readLine(request.prompt()), false));
    } catch (IOException e) {
      if (run != null) {
        run.text(
            Channel.STDERR, "rank " + request.rank() + " got no input: " + e.getMessage() + "\n");
      }
      rank.tell(new ToRank.Input("", true));
    }
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
