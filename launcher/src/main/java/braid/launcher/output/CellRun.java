package braid.launcher.output;

import braid.launcher.cell.CellOutput;
import braid.launcher.ranks.RankEvent;
import braid.launcher.ranks.RankEvent.Channel;
import braid.launcher.ranks.RankProcess;
import braid.launcher.wire.ToRank;
import braid.model.MimeBundle;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// One cell's output on its way from the ranks to the client: merged, in order, within the cell's
/// limit, and coalesced, because clients choke on one message per line.
public final class CellRun {
  private final CellOutput output;
  private final int ranks;
  private final int first;
  private volatile OutputMode mode;
  private volatile OutputMerger merger;
  private final OutputQueue queue;
  private final Object delivery = new Object();
  private final Set<Integer> silent = ConcurrentHashMap.newKeySet();

  /// `first` is the lowest rank that runs this cell.
  public CellRun(CellOutput output, int ranks, int first, OutputMode mode, OutputLimit limit) {
    this.output = output;
    this.ranks = ranks;
    this.first = first;
    this.mode = mode;
    queue = new OutputQueue(limit);
    merger = new OutputMerger(ranks, first, mode, this::text);
  }

  /// Holds what comes from here on to another limit.
  public void limit(OutputLimit next) {
    queue.limit(next);
  }

  /// The cell is to stop: output that finds no room is left out instead of holding its rank back.
  public void hurry() {
    queue.hurry();
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

  /// Takes what a rank printed. Waits while the client is slow, which holds the rank back.
  public void printed(RankEvent.Output event) {
    queue.awaitRoom();
    merger.keepPace(event.rank());
    merger.accept(event.rank(), event.channel(), event.text(), System.nanoTime());
  }

  /// Takes what a cell of the front printed, as [#printed] does.
  public void printed(Channel channel, String text) {
    queue.awaitRoom();
    text(channel, text);
  }

  /// Takes text of the session itself, without waiting.
  public void text(Channel channel, String text) {
    queue.text(channel, text);
  }

  /// Says that a rank does not answer, once in this cell.
  public void silent(RankEvent.Silent event) {
    if (silent.add(event.rank())) {
      text(Channel.STDERR, event + "\n");
    }
  }

  public void answersAgain(RankEvent.AnswersAgain event) {
    silent.remove(event.rank());
    text(Channel.STDERR, event + "\n");
  }

  /// Takes what a rank displays: the first one's, or each one's with its rank.
  public void shown(RankEvent.Displayed event) {
    if (mode == OutputMode.ALL && ranks > 1) {
      var id = event.displayId();
      shown(
          ResultMerger.labelled(event.rank(), event.bundle()),
          id.isEmpty() ? id : id + "-rank-" + event.rank(),
          event.update());
    } else if (event.rank() == first) {
      shown(event.bundle(), event.displayId(), event.update());
    }
  }

  /// Takes something to display. Waits while the client is slow.
  public void shown(MimeBundle bundle, String displayId, boolean update) {
    queue.awaitRoom();
    queue.shown(bundle, displayId, update);
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
      for (var item = queue.next(); item != null; item = queue.next()) {
        switch (item) {
          case OutputItem.Text text when text.channel() == Channel.STDOUT ->
              output.stdout(text.text());
          case OutputItem.Text text -> output.stderr(text.text());
          case OutputItem.Shown shown when shown.isUpdate() ->
              output.update(shown.bundle(), shown.id());
          case OutputItem.Shown shown -> output.display(shown.bundle(), shown.id());
        }
      }
    }
  }

  /// The cell has ended: delivers the rest. What still comes is delivered as long as there is room
  /// within the limit.
  public void finish() {
    merger.finish();
    queue.finish();
    deliver();
  }
}
