package braid.launcher.output;

import braid.internal.report.json.StudyJson;
import braid.launcher.cell.CellOutput;
import braid.launcher.ranks.RankEvent;
import braid.launcher.ranks.RankEvent.Channel;
import braid.launcher.ranks.RankProcess;
import braid.launcher.wire.ToRank;
import braid.model.Host;
import braid.model.MimeBundle;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/// One cell's output on its way from the ranks to the client: merged, ordered, limited, and
/// coalesced, because clients cannot handle one message per line.
public final class CellRun {
  private final CellOutput output;
  private final int ranks;
  private final List<Host> hosts;
  private final int first;
  private final long holdNanos;
  private volatile OutputMode mode;
  private volatile OutputMerger merger;
  private final OutputQueue queue;
  private final Object delivery = new Object();
  private final Queue<String> notices = new ConcurrentLinkedQueue<>();
  private final Set<Integer> silent = ConcurrentHashMap.newKeySet();

  /// Creates the output of a cell.
  ///
  /// @param hosts hosts of the ranks, which labels name if there are several
  /// @param first the lowest rank that runs it
  /// @param holdNanos longest time that a line waits for rank 0 to print it too
  public CellRun(
      CellOutput output,
      int ranks,
      List<Host> hosts,
      int first,
      OutputMode mode,
      OutputLimit limit,
      long holdNanos) {
    this.output = output;
    this.ranks = ranks;
    this.hosts = hosts;
    this.first = first;
    this.holdNanos = holdNanos;
    this.mode = mode;
    queue = new OutputQueue(limit);
    merger = new OutputMerger(ranks, first, mode, holdNanos, this::text);
  }

  /// Applies another limit from now on.
  public void limit(OutputLimit next) {
    queue.limit(next);
  }

  /// Stops blocking: output without room is dropped instead of blocking its rank.
  public void stopBlocking() {
    queue.stopBlocking();
    merger.stopBlocking();
  }

  /// Applies another mode from now on.
  public void mode(OutputMode next) {
    merger.finish();
    mode = next;
    merger = new OutputMerger(ranks, first, next, holdNanos, this::text);
  }

  public OutputMode mode() {
    return mode;
  }

  /// Adds text of a rank. Blocks while the client is slow, which also blocks the rank.
  public void printed(RankEvent.Output event) {
    queue.awaitRoom();
    merger.keepPace(event.rank());
    merger.accept(event.rank(), event.channel(), event.text(), System.nanoTime());
  }

  /// Adds text of a `%%front` cell, as [#printed] does.
  public void printed(Channel channel, String text) {
    queue.awaitRoom();
    text(channel, text);
  }

  /// Adds text of the session itself, without blocking.
  public void text(Channel channel, String text) {
    queue.text(channel, text);
  }

  /// Reports that a rank does not answer, once per cell.
  public void silent(RankEvent.Silent event) {
    if (silent.add(event.rank())) {
      notice(event.toString());
    }
  }

  /// Reports that a rank answers again, if this cell reported its silence.
  public void answersAgain(RankEvent.AnswersAgain event) {
    if (silent.remove(event.rank())) {
      notice(event.toString());
    }
  }

  private void notice(String line) {
    text(Channel.STDERR, line + "\n");
    notices.add(line);
  }

  /// Adds a display of a rank: that of the first rank, or of every rank with its label.
  public void shown(RankEvent.Displayed event) {
    if (mode == OutputMode.ALL && ranks > 1) {
      var id = event.displayId();
      shown(
          ResultMerger.labelled(event.rank(), hosts, drawn(event)),
          id.isEmpty() ? id : id + "-rank-" + event.rank(),
          event.update());
    } else if (event.rank() == first) {
      shown(drawn(event), event.displayId(), event.update());
    }
  }

  /// Returns a study with its table and chart, which ranks leave to the front, and other displays
  /// as they are.
  private static MimeBundle drawn(RankEvent.Displayed event) {
    return event.bundle().data().containsKey(StudyJson.MIME)
        ? ResultMerger.merge(Map.of(event.rank(), event.bundle()))
        : event.bundle();
  }

  /// Adds a display. Blocks while the client is slow.
  public void shown(MimeBundle bundle, String displayId, boolean update) {
    queue.awaitRoom();
    queue.shown(bundle, displayId, update);
  }

  /// Reads a line from the user for a rank. If that fails, the rank's input ends, and the cell's
  /// stderr gives the reason.
  ///
  /// @param run the running cell, or null
  public static void ask(
      @Nullable CellRun run, RankProcess rank, RankEvent.InputRequested request) {
    try {
      if (run == null) {
        throw new IOException("no cell is running");
      }
      if (request.rank() != 0) {
        throw new IOException("only rank 0 can read from the user");
      }
      run.deliver();
      rank.send(new ToRank.Input(run.output.readLine(request.prompt()), false));
    } catch (IOException e) {
      if (run != null) {
        run.text(
            Channel.STDERR, "rank " + request.rank() + " got no input: " + e.getMessage() + "\n");
      }
      rank.send(new ToRank.Input("", true));
    }
  }

  /// Delivers gathered output. Called periodically, and at the end of the cell.
  public void deliver() {
    merger.tick(System.nanoTime());
    synchronized (delivery) {
      for (var line = notices.poll(); line != null; line = notices.poll()) {
        output.notice(line);
      }
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

  /// Ends the cell: delivers the rest. Later output is delivered while the limit has room.
  public void finish() {
    merger.finish();
    queue.finish();
    deliver();
  }
}
