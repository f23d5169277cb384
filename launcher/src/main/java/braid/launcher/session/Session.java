package braid.launcher.session;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellOutput;
import braid.launcher.cell.Outcome;
import braid.launcher.cell.RunningCell;
import braid.launcher.compile.CellCompiler;
import braid.launcher.compile.CellCompiler.Piece;
import braid.launcher.compile.CompileError;
import braid.launcher.compile.Origins;
import braid.launcher.compile.OtherCells;
import braid.launcher.compile.Program;
import braid.launcher.editing.Assistant;
import braid.launcher.experiment.Experiment;
import braid.launcher.fanout.Invocation;
import braid.launcher.fanout.Invocation.Ending;
import braid.launcher.machine.BackendChoice;
import braid.launcher.output.CellRun;
import braid.launcher.output.Drain;
import braid.launcher.output.OutputLimit;
import braid.launcher.output.OutputMerger;
import braid.launcher.output.OutputMode;
import braid.launcher.output.ResultMerger;
import braid.launcher.ranks.Death;
import braid.launcher.ranks.RankEvent;
import braid.launcher.ranks.RankEvent.Channel;
import braid.launcher.ranks.RankSet;
import braid.model.MimeBundle;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import jdk.jshell.SnippetEvent;
import jdk.jshell.VarSnippet;
import org.jspecify.annotations.Nullable;

/// Runs cells on all ranks and merges their output. Depends on JShell, magics, ranks and outputs,
/// but not on Jupyter.
public final class Session implements AutoCloseable {
  private static final Duration DELIVERY = Duration.ofMillis(50);

  /// Number of statements in a cell from which a note warns: they take about 20 s to compile.
  private static final int MANY_STATEMENTS = 1_000;

  private final SessionOptions options;
  private final ReentrantLock oneCell = new ReentrantLock();
  private final Drain drain = new Drain();

  /// Deaths that no cell reports.
  private final Queue<Death> deaths = new ConcurrentLinkedQueue<>();

  private final GatheredEvidence evidence;
  private final Magics magics;
  private final ScheduledExecutorService clock =
      Executors.newSingleThreadScheduledExecutor(
          Thread.ofPlatform().daemon().name("braid-output").factory());
  private volatile @Nullable CellRun current;
  private volatile RunningCell running = new RunningCell(new Cell("no cell", ""));
  private OutputMode mode = OutputMode.DIFF;
  private OutputLimit limit;
  private volatile boolean closed;
  private volatile RankCluster cluster;

  private Session(SessionOptions options) {
    this.options = options;
    limit = options.outputLimit();
    evidence = new GatheredEvidence(options.home(), this::warn);
    magics = new Magics(this, evidence);
    try {
      cluster = RankCluster.start(options, this::onRankEvent);
    } catch (RuntimeException | Error e) {
      evidence.close();
      clock.shutdownNow();
      throw e;
    }
    var _ =
        clock.scheduleWithFixedDelay(
            this::tick, DELIVERY.toMillis(), DELIVERY.toMillis(), TimeUnit.MILLISECONDS);
  }

  /// Starts the ranks and waits until each is ready.
  public static Session start(SessionOptions options) {
    return new Session(options);
  }

  /// Records later measurements and class path changes in the manifest of this experiment.
  public void recordIn(Experiment experiment) {
    evidence.recordIn(experiment, ranks().hosts());
  }

  /// Adds a jar or a folder of classes to the class path of the compiler and all ranks.
  public void addToClassPath(Path path) {
    cluster.compiler().shell().addToClasspath(path.toString());
    evidence.added(path);
  }

  /// Adds the classes of a program; failures show lines of its source.
  public void add(Program program) {
    cluster.compiler().shell().addToClasspath(program.folder().toString());
    cluster
        .origins()
        .put(
            program.name(),
            new Origins.Origin(String.valueOf(program.file().getFileName()), 1, program.source()));
  }

  /// Runs one cell to its end.
  public Outcome run(Cell cell, CellOutput output) {
    return begin(cell, output).await();
  }

  /// Begins a cell.
  public RunningCell begin(Cell cell, CellOutput output) {
    var handle = new RunningCell(cell);
    begin(handle, output);
    return handle;
  }

  /// Begins a cell on a thread of its own. Cells run one at a time; a second one waits.
  public void begin(RunningCell cell, CellOutput output) {
    Thread.ofPlatform().daemon().name("run " + cell.cell().name()).start(() -> run(cell, output));
  }

  private void run(RunningCell handle, CellOutput output) {
    long start = System.nanoTime();
    oneCell.lock();
    try {
      if (handle.begin(this::stop, () -> cluster.fanOut().pending())) {
        running = handle;
        cluster.fanOut().begin(handle);
        handle.end(run(handle.cell(), output, start));
      }
    } catch (Throwable e) {
      handle.fail(e);
    } finally {
      oneCell.unlock();
    }
  }

  private Outcome run(Cell cell, CellOutput output, long start) {
    try {
      var header = CellHeader.of(cell, ranks().size());
      var run =
          new CellRun(
              output,
              ranks().size(),
              ranks().hosts(),
              header.first(),
              header.output().orElse(mode),
              header.limit().orElse(limit),
              cell.isProgram() ? OutputMerger.PROGRAM_HOLD_NANOS : OutputMerger.HOLD_NANOS);
      current = run;
      int frozenBefore = frozen().size();
      Optional<MimeBundle> result = Optional.empty();
      Optional<CellFailure> failure = Optional.empty();
      try {
        result = runHeaded(header, cell, run);
      } catch (CellFailed e) {
        failure = Optional.of(e.failure());
      }
      if (running.isKilled() && ranks().death().isPresent() && !closed) {
        failure = Optional.of(restartAfterKill(cell, failure));
      } else if (failure.isEmpty() && isInterrupted() && frozen().size() > frozenBefore) {
        failure = Optional.of(FailureReport.ended(cell, frozen()));
      }
      run.finish();
      return new Outcome(result, failure, Duration.ofNanos(System.nanoTime() - start));
    } catch (MagicError e) {
      return new Outcome(
          Optional.empty(), Optional.of(e.failure()), Duration.ofNanos(System.nanoTime() - start));
    }
  }

  /// Returns the deaths of ranks that were killed because they were frozen when a cell had to end.
  private List<Death> frozen() {
    return ranks().all().stream()
        .filter(rank -> rank.endedFrozen())
        .flatMap(rank -> rank.death().stream())
        .toList();
  }

  /// Restarts all ranks after [RunningCell#kill] killed some. Returns the cell's failure.
  private CellFailure restartAfterKill(Cell cell, Optional<CellFailure> failure) {
    var dead =
        ranks().all().stream()
            .filter(rank -> rank.death().isPresent())
            .map(rank -> rank.rank())
            .toList();
    var line = cluster.origins().runningLine();
    restart();
    return FailureReport.killed(
        cell, line, dead, failure.map(CellFailure::traceback).orElse(List.of()));
  }

  private Optional<MimeBundle> runHeaded(CellHeader header, Cell cell, CellRun run)
      throws CellFailed {
    long start = ranNanos();
    try {
      return switch (header.placement()) {
        case CellHeader.Placement.Front() -> magics.front().run(cell.name(), header.body(), run);
        case CellHeader.Placement.Ranks(var chosen) -> {
          cluster.fanOut().select(chosen);
          yield runPieces(new Cell(cell.name(), header.body()), run);
        }
        case CellHeader.Placement.Everywhere() -> {
          cluster.fanOut().selectAll();
          yield runPieces(new Cell(cell.name(), header.body()), run);
        }
      };
    } finally {
      if (header.timed()) {
        run.text(Channel.STDOUT, Magics.time(ranNanos() - start));
      }
    }
  }

  /// Runs the pieces of a cell in order, each on all selected ranks; then waits for their output.
  Optional<MimeBundle> runPieces(Cell cell, CellRun run) throws CellFailed {
    Optional<MimeBundle> result = Optional.empty();
    int compiledBefore = cluster.compiler().compiled();
    boolean ran = false;
    try {
      var pieces = cluster.compiler().split(cell);
      if (pieces.size() >= MANY_STATEMENTS) {
        warn(
            "note: each of the %d statements of this cell is compiled and run separately, in 20 ms or more; a method or a block { } of them is compiled at once"
                .formatted(pieces.size()));
      }
      for (var piece : pieces) {
        result =
            switch (piece) {
              case Piece.Magic magic -> magics.line(magic, cell, run);
              case Piece.Java java -> {
                ran = true;
                yield runJava(java, cell, run);
              }
            };
        if (isInterrupted()) {
          // Work that the pieces enqueued must not overlap the next measurement.
          resume();
          throw new CellFailed(
              frozen().isEmpty()
                  ? FailureReport.interrupted(cell)
                  : FailureReport.ended(cell, frozen()));
        }
      }
      CellCompiler.growth(compiledBefore, cluster.compiler().compiled()).ifPresent(this::warn);
      return result;
    } catch (CompileError e) {
      throw new CellFailed(e.failure());
    } catch (MagicError e) {
      throw new CellFailed(e.failure());
    } finally {
      // Magics need no rank, so a frozen rank must not block a cell that has only magics.
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
    var fanOut = cluster.fanOut();
    var origin = new Origins.Origin(cell.name(), piece.firstLine(), cell.source());
    fanOut.render(piece.shown());
    cluster.origins().expect(origin);
    var events = eval(piece.source());
    Optional<MimeBundle> result = Optional.empty();
    for (var event : events) {
      if (event.causeSnippet() == null) {
        cluster.origins().put(event.snippet().id(), origin);
        result = resultOf(event, piece, cell, run);
        cluster
            .compiler()
            .lacks(event, frontCells())
            .ifPresent(lacking -> warn("note: not usable until this is declared: " + lacking));
      }
    }
    return result;
  }

  private List<SnippetEvent> eval(String source) throws CellFailed {
    try {
      return cluster.compiler().eval(source);
    } catch (IllegalStateException e) {
      // JShell has ended because a rank died; the front may not have noticed the death yet.
      var deadRank = cluster.fanOut().deadRank();
      if (deadRank.isPresent()) {
        throw new CellFailed(FailureReport.dead(deadRank.get()));
      }
      throw e;
    }
  }

  /// Returns the result of a snippet that has run; throws if it failed or was interrupted.
  private Optional<MimeBundle> resultOf(
      SnippetEvent event, Piece.Java piece, Cell cell, CellRun run) throws CellFailed {
    var error = cluster.compiler().errors(cell, piece, event, frontCells());
    if (error.isPresent()) {
      throw new CellFailed(error.get().failure());
    }
    var ended = cluster.fanOut().takeLast();
    boolean failed =
        event.exception() != null
            || ended.stream()
                .flatMap(e -> e.values().stream())
                .anyMatch(e -> e instanceof Ending.Dead || Invocation.failure(e).isPresent());
    if (event.snippet() instanceof VarSnippet variable) {
      cluster.origins().declared(variable.name(), !failed);
    }
    if (failed) {
      var report =
          FailureReport.of(
              cell,
              cluster.origins(),
              ranks().size(),
              ended.orElse(Map.of()),
              event.exception(),
              isInterrupted(),
              frozen());
      resume();
      throw new CellFailed(report);
    }
    if (!piece.shown() || !CellCompiler.hasResult(event.snippet()) || ended.isEmpty()) {
      return Optional.empty();
    }
    var values = Invocation.values(ended.get());
    return values.isEmpty()
        ? Optional.empty()
        : Optional.of(ResultMerger.merge(values, run.mode(), ranks().hosts()));
  }

  private OtherCells frontCells() {
    return OtherCells.front(magics.front()::declares);
  }

  private void resume() {
    try {
      cluster.fanOut().resume();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void drain() {
    try {
      long number = drain.begin(ranks().size());
      drain.await(cluster.fanOut().mark(number));
      for (var rank : ranks().all()) {
        rank.awaitOutput();
      }
      evidence.awaitSaved();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void onRankEvent(RankEvent event) {
    var run = current;
    switch (event) {
      case RankEvent.OutputMarked mark -> drain.marked(mark);
      case RankEvent.Died died -> died(died, run);
      case RankEvent.Output output when run != null -> run.printed(output);
      case RankEvent.Output output -> System.err.print(output.text());
      case RankEvent.Displayed shown when run != null -> run.shown(shown);
      case RankEvent.Displayed ignored -> {}
      case RankEvent.Published published -> evidence.published(published.bundle());
      case RankEvent.Silent silent when run != null && running.isRunning() -> run.silent(silent);
      case RankEvent.AnswersAgain again when run != null && running.isRunning() ->
          run.answersAgain(again);
      case RankEvent.Silent ignored -> {}
      case RankEvent.AnswersAgain ignored -> {}
      case RankEvent.InputRequested request ->
          Thread.ofVirtual().start(() -> CellRun.ask(run, ranks().get(request.rank()), request));
    }
  }

  private void died(RankEvent.Died died, @Nullable CellRun run) {
    drain.died(died.rank());
    if (!closed && run != null && !running.isRunning()) {
      deaths.add(died.death());
    }
  }

  /// Reports ranks that died while no cell ran; those of one delivery together.
  private void reportDeaths(CellRun run) {
    var together = new ArrayList<Death>();
    for (var death = deaths.poll(); death != null; death = deaths.poll()) {
      together.add(death);
    }
    if (!together.isEmpty()) {
      together.sort(Comparator.comparingInt(Death::rank));
      run.text(Channel.STDERR, Death.together(together) + "; %restart starts new ranks\n");
    }
  }

  private void warn(String line) {
    var run = current;
    if (run != null) {
      run.text(Channel.STDERR, line + "\n");
    }
  }

  /// Delivers output. Repeats the stop of an interrupted cell: front code may catch the first one.
  private void tick() {
    running.stopAgain();
    var run = current;
    if (run != null) {
      reportDeaths(run);
      run.deliver();
    }
  }

  /// Stops the running cell, wherever it is.
  private void stop() {
    stopBlocking();
    cluster.fanOut().stop();
    magics.front().stop();
  }

  private void stopBlocking() {
    var run = current;
    if (run != null) {
      run.stopBlocking();
    }
  }

  /// Ends all ranks and starts new ones; all declarations are lost.
  public void restart() {
    oneCell.lock();
    try {
      cluster.close();
      cluster = RankCluster.start(options, this::onRankEvent);
      cluster.fanOut().begin(running);
      // The old compiler's classes are in the old generation, where they would stay until the heap
      // is full.
      System.gc();
    } finally {
      oneCell.unlock();
    }
  }

  OutputMode output() {
    return mode;
  }

  /// Sets the output mode for the rest of this cell and for later cells. Earlier output of this
  /// cell keeps the old mode.
  void output(OutputMode next, CellRun run) {
    drain();
    run.mode(next);
    mode = next;
  }

  OutputLimit limit() {
    return limit;
  }

  /// Sets the output limit for the rest of this cell and for later cells.
  void limit(OutputLimit next, CellRun run) {
    run.limit(next);
    limit = next;
  }

  boolean isInterrupted() {
    return running.isInterrupted();
  }

  long ranNanos() {
    return cluster.fanOut().ranNanos();
  }

  RankSet ranks() {
    return cluster.ranks();
  }

  CellCompiler compiler() {
    return cluster.compiler();
  }

  /// Returns the ranks' backend, and why it was chosen.
  BackendChoice backend() {
    return options.backend();
  }

  public int size() {
    return options.ranks();
  }

  /// Returns an assistant for editors.
  public Assistant assistant() {
    return new Assistant(cluster.compiler(), cluster.origins(), magics.front()::assistant, size());
  }

  /// Ends every rank and frees all resources. Further calls have no effect.
  @Override
  public void close() {
    closed = true;
    stopBlocking();
    clock.shutdownNow();
    magics.front().close();
    cluster.fanOut().giveUp();
    cluster.close();
    // After the ranks, which publish until their end.
    evidence.close();
  }
}
