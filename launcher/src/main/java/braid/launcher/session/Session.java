package braid.launcher.session;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellOutput;
import braid.launcher.cell.Outcome;
import braid.launcher.compile.CellCompiler;
import braid.launcher.compile.CellCompiler.Piece;
import braid.launcher.compile.CompileError;
import braid.launcher.compile.Origins;
import braid.launcher.editing.Assistant;
import braid.launcher.experiment.Experiment;
import braid.launcher.fanout.Invocation;
import braid.launcher.fanout.Invocation.Ending;
import braid.launcher.machine.BackendChoice;
import braid.launcher.output.CellRun;
import braid.launcher.output.Drain;
import braid.launcher.output.OutputLimit;
import braid.launcher.output.OutputMode;
import braid.launcher.output.ResultMerger;
import braid.launcher.ranks.Death;
import braid.launcher.ranks.RankEvent;
import braid.launcher.ranks.RankEvent.Channel;
import braid.launcher.ranks.RankSet;
import braid.model.MimeBundle;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import jdk.jshell.SnippetEvent;
import org.jspecify.annotations.Nullable;

/// The heart: runs cells on all ranks and merges what they say. It knows JShell, magics, ranks and
/// outputs, and nothing of Jupyter.
public final class Session implements AutoCloseable {
  private static final Duration DELIVERY = Duration.ofMillis(50);

  /// Takes some twenty seconds to compile.
  private static final int MANY_STATEMENTS = 1_000;

  private final SessionOptions options;
  private final ReentrantLock oneCell = new ReentrantLock();
  private final Drain drain = new Drain();
  private final Gathered gathered;
  private final Magics magics;
  private final ScheduledExecutorService clock =
      Executors.newSingleThreadScheduledExecutor(
          Thread.ofPlatform().daemon().name("braid-output").factory());
  private volatile @Nullable CellRun current;
  private volatile boolean interrupted;
  private OutputMode mode = OutputMode.DIFF;
  private OutputLimit limit;
  private volatile boolean closed;
  private volatile RankCluster crew;
  private long outputNanos;

  private Session(SessionOptions options) {
    this.options = options;
    limit = options.outputLimit();
    gathered = new Gathered(options.home(), this::complain);
    magics = new Magics(this, gathered);
    try {
      crew = RankCluster.start(options, this::happened);
    } catch (RuntimeException | Error e) {
      gathered.close();
      clock.shutdownNow();
      throw e;
    }
    var _ =
        clock.scheduleWithFixedDelay(
            this::deliver, DELIVERY.toMillis(), DELIVERY.toMillis(), TimeUnit.MILLISECONDS);
  }

  /// Starts the ranks and waits until each is ready.
  public static Session start(SessionOptions options) {
    return new Session(options);
  }

  /// What is measured and put on the class path from now on is named in that run's manifest.
  public void recordIn(Experiment experiment) {
    gathered.recordIn(experiment);
  }

  /// Runs one cell to its end. Cells are run one at a time; a second call waits.
  public Outcome run(Cell cell, CellOutput output) {
    long start = System.nanoTime();
    oneCell.lock();
    try {
      interrupted = false;
      crew.fanOut().begin();
      var header = CellHeader.of(cell, ranks().size());
      var run =
          new CellRun(
              output,
              ranks().size(),
              header.first(),
              header.output().orElse(mode),
              header.limit().orElse(limit));
      current = run;
      int frozenBefore = frozen().size();
      Optional<MimeBundle> result = Optional.empty();
      Optional<CellFailure> failure = Optional.empty();
      try {
        result = runHeaded(header, cell, run);
      } catch (CellFailed e) {
        failure = Optional.of(e.failure());
      }
      if (crew.fanOut().insisted() && ranks().death().isPresent() && !closed) {
        failure = Optional.of(startAnew(cell, failure));
      } else if (failure.isEmpty() && interrupted && frozen().size() > frozenBefore) {
        failure = Optional.of(FailureReport.ended(cell, frozen()));
      }
      run.finish();
      return new Outcome(result, failure, Duration.ofNanos(System.nanoTime() - start));
    } catch (MagicError e) {
      return new Outcome(
          Optional.empty(), Optional.of(e.failure()), Duration.ofNanos(System.nanoTime() - start));
    } finally {
      oneCell.unlock();
    }
  }

  /// The ranks that were ended because they did not answer when a cell was to end.
  private List<Death> frozen() {
    return ranks().all().stream()
        .filter(rank -> rank.endedFrozen())
        .flatMap(rank -> rank.death().stream())
        .toList();
  }

  /// The user insisted and ranks had to be ended: there are new ones at once.
  private CellFailure startAnew(Cell cell, Optional<CellFailure> failure) {
    var dead =
        ranks().all().stream()
            .filter(rank -> rank.death().isPresent())
            .map(rank -> rank.rank())
            .toList();
    var line = crew.origins().runningLine();
    restart();
    return FailureReport.insisted(
        cell, line, dead, failure.map(CellFailure::traceback).orElse(List.of()));
  }

  private Optional<MimeBundle> runHeaded(CellHeader header, Cell cell, CellRun run)
      throws CellFailed {
    long start = ranNanos();
    try {
      return switch (header.where()) {
        case CellHeader.Where.Front() -> magics.front().run(cell.name(), header.body(), run);
        case CellHeader.Where.Ranks(var chosen) -> {
          crew.fanOut().select(chosen);
          yield runPieces(new Cell(cell.name(), header.body()), run);
        }
        case CellHeader.Where.Everywhere() -> {
          crew.fanOut().selectAll();
          yield runPieces(new Cell(cell.name(), header.body()), run);
        }
      };
    } finally {
      if (header.timed()) {
        run.text(Channel.STDOUT, Magics.time(ranNanos() - start));
      }
    }
  }

  /// Runs the pieces of a cell one after the other, each on all chosen ranks; then waits for what
  /// they printed.
  Optional<MimeBundle> runPieces(Cell cell, CellRun run) throws CellFailed {
    Optional<MimeBundle> result = Optional.empty();
    int compiledBefore = crew.compiler().compiled();
    boolean ran = false;
    try {
      var pieces = crew.compiler().split(cell);
      if (pieces.size() >= MANY_STATEMENTS) {
        complain(
            "note: each of the %d statements of this cell is compiled and run by itself, in 20 ms or more; a method or a block { } of them is compiled at once"
                .formatted(pieces.size()));
      }
      for (var piece : pieces) {
        if (interrupted) {
          // What the pieces before gave to streams must not go on into the next measurement.
          resume();
          throw new CellFailed(FailureReport.interrupted(cell));
        }
        result =
            switch (piece) {
              case Piece.Magic magic -> magics.line(magic, cell, run);
              case Piece.Java java -> {
                ran = true;
                yield runJava(java, cell, run);
              }
            };
      }
      CellCompiler.growth(compiledBefore, crew.compiler().compiled()).ifPresent(this::complain);
      return result;
    } catch (CompileError e) {
      throw new CellFailed(e.failure());
    } catch (MagicError e) {
      throw new CellFailed(e.failure());
    } finally {
      // Magics need no rank; a frozen one must not keep them from ending.
      if (ran) {
        drain();
      }
    }
  }

  private Optional<MimeBundle> runJava(Piece.Java piece, Cell cell, CellRun run) throws CellFailed {
    var death = ranks().death();
    if (death.isPresent()) {
      throw new CellFailed(FailureReport.dead(death.get()));
    }
    var fanOut = crew.fanOut();
    var origin = new Origins.Origin(cell.name(), piece.firstLine(), cell.source());
    fanOut.render(piece.shown());
    crew.origins().expect(origin);
    var events = eval(piece.source());
    Optional<MimeBundle> result = Optional.empty();
    for (var event : events) {
      if (event.causeSnippet() == null) {
        crew.origins().put(event.snippet().id(), origin);
        result = settle(event, piece, cell, run);
        crew.compiler()
            .lacks(event)
            .ifPresent(
                lacking -> complain("note: this cannot be used before it is declared: " + lacking));
      }
    }
    return result;
  }

  private List<SnippetEvent> eval(String source) throws CellFailed {
    try {
      return crew.compiler().eval(source);
    } catch (IllegalStateException e) {
      // JShell has ended because a rank had, whether the front has seen that yet or not.
      var lost = crew.fanOut().lost();
      if (lost.isPresent()) {
        throw new CellFailed(FailureReport.dead(lost.get()));
      }
      throw e;
    }
  }

  /// Looks at what one snippet came to.
  private Optional<MimeBundle> settle(SnippetEvent event, Piece.Java piece, Cell cell, CellRun run)
      throws CellFailed {
    var error = crew.compiler().errors(cell, piece, event);
    if (error.isPresent()) {
      throw new CellFailed(error.get().failure());
    }
    var ended = crew.fanOut().takeLast();
    boolean failed =
        event.exception() != null
            || ended.stream()
                .flatMap(e -> e.values().stream())
                .anyMatch(e -> e instanceof Ending.Dead || Invocation.failure(e).isPresent());
    if (failed) {
      boolean byUser = interrupted || crew.fanOut().wasInterrupted();
      var report =
          FailureReport.of(
              cell,
              crew.origins(),
              ranks().size(),
              ended.orElse(Map.of()),
              event.exception(),
              byUser,
              frozen());
      resume();
      throw new CellFailed(report);
    }
    if (crew.fanOut().disturbed()) {
      // Its waits ended because they were told to, not because what they waited for had come.
      resume();
      throw new CellFailed(
          frozen().isEmpty()
              ? FailureReport.interrupted(cell)
              : FailureReport.ended(cell, frozen()));
    }
    if (!piece.shown() || !CellCompiler.hasResult(event.snippet()) || ended.isEmpty()) {
      return Optional.empty();
    }
    var values = Invocation.values(ended.get());
    return values.isEmpty()
        ? Optional.empty()
        : Optional.of(ResultMerger.merge(values, run.mode()));
  }

  private void resume() {
    try {
      crew.fanOut().resume();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void drain() {
    long start = System.nanoTime();
    try {
      long number = drain.begin(ranks().size());
      drain.await(crew.fanOut().mark(number));
      gathered.settle();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      outputNanos += System.nanoTime() - start;
    }
  }

  private void happened(RankEvent event) {
    var run = current;
    switch (event) {
      case RankEvent.OutputMarked mark -> drain.marked(mark);
      case RankEvent.Died died -> died(died, run);
      case RankEvent.Output output when run != null -> run.printed(output);
      case RankEvent.Output output -> System.err.print(output.text());
      case RankEvent.Displayed shown when run != null -> run.shown(shown);
      case RankEvent.Displayed ignored -> {}
      case RankEvent.Published published -> gathered.published(published.bundle());
      case RankEvent.Silent silent when run != null && oneCell.isLocked() -> run.silent(silent);
      case RankEvent.AnswersAgain again when run != null && oneCell.isLocked() ->
          run.answersAgain(again);
      case RankEvent.Silent ignored -> {}
      case RankEvent.AnswersAgain ignored -> {}
      case RankEvent.InputRequested request ->
          Thread.ofVirtual().start(() -> CellRun.ask(run, ranks().get(request.rank()), request));
    }
  }

  private void died(RankEvent.Died died, @Nullable CellRun run) {
    drain.died(died.rank());
    if (!closed && run != null && !oneCell.isLocked()) {
      run.text(Channel.STDERR, died.death() + "; %restart starts new ranks\n");
    }
  }

  private void complain(String what) {
    var run = current;
    if (run != null) {
      run.text(Channel.STDERR, what + "\n");
    }
  }

  private void deliver() {
    var run = current;
    if (run != null) {
      run.deliver();
    }
  }

  /// Stops the running cell on every rank, from another thread. Without one it does nothing, and
  /// twice is no more than once.
  public void interrupt() {
    if (oneCell.isLocked()) {
      interrupted = true;
      hurry();
      crew.fanOut().interrupt();
      magics.front().interrupt();
    }
  }

  /// Stops the running cell whatever that takes, because an interrupt did not: ranks that do not
  /// stop within a moment are ended and new ones started, which the cell's failure says.
  public void insist() {
    if (oneCell.isLocked()) {
      interrupted = true;
      hurry();
      crew.fanOut().insist();
      magics.front().interrupt();
    }
  }

  private void hurry() {
    var run = current;
    if (run != null) {
      run.hurry();
    }
  }

  /// The ranks that the running cell still waits for.
  public List<Integer> pending() {
    return crew.fanOut().pending();
  }

  /// Stops all ranks and starts them anew; nothing that cells declared is left.
  public void restart() {
    oneCell.lock();
    try {
      crew.close();
      crew = RankCluster.start(options, this::happened);
      outputNanos = 0;
      // The old compiler's classes are old enough to stay until the heap is at its limit.
      System.gc();
    } finally {
      oneCell.unlock();
    }
  }

  /// Where the time of the cells went so far; a restart begins anew.
  public Stages stages() {
    oneCell.lock();
    try {
      var compiler = crew.compiler();
      var fanOut = crew.fanOut();
      long onRanks = fanOut.loadNanos() + fanOut.ranNanos();
      return new Stages(
          compiler.splitNanos(),
          compiler.evalNanos() - onRanks,
          fanOut.loadNanos(),
          fanOut.ranNanos(),
          outputNanos);
    } finally {
      oneCell.unlock();
    }
  }

  OutputMode output() {
    return mode;
  }

  /// From here on, in this cell too; what was printed before is shown as it was to be.
  void output(OutputMode next, CellRun run) {
    drain();
    run.mode(next);
    mode = next;
  }

  OutputLimit limit() {
    return limit;
  }

  /// From here on, in this cell too.
  void limit(OutputLimit next, CellRun run) {
    run.limit(next);
    limit = next;
  }

  boolean isInterrupted() {
    return interrupted;
  }

  long ranNanos() {
    return crew.fanOut().ranNanos();
  }

  RankSet ranks() {
    return crew.ranks();
  }

  CellCompiler compiler() {
    return crew.compiler();
  }

  /// What the ranks run on, and why.
  BackendChoice backend() {
    return options.backend();
  }

  public int size() {
    return options.ranks();
  }

  /// Answers what an editor asks about code.
  public Assistant assistant() {
    return new Assistant(crew.compiler(), crew.origins(), size());
  }

  /// Ends every rank and frees what the session holds. Twice is harmless.
  @Override
  public void close() {
    closed = true;
    hurry();
    clock.shutdownNow();
    magics.front().close();
    gathered.close();
    crew.close();
  }
}
