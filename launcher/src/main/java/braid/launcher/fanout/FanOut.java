package braid.launcher.fanout;

import braid.launcher.cell.Cell;
import braid.launcher.cell.RunningCell;
import braid.launcher.fanout.Invocation.Ending;
import braid.launcher.ranks.Death;
import braid.launcher.ranks.RankDied;
import braid.launcher.ranks.RankProcess;
import braid.launcher.ranks.RankSet;
import braid.launcher.wire.FromRank;
import braid.launcher.wire.RankFailure;
import braid.launcher.wire.ToRank;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import jdk.jshell.spi.ExecutionControl;
import org.jspecify.annotations.Nullable;

/// Boundary between compilation and execution: JShell compiles once, here, and every rank loads and
/// runs the result. So all ranks run the same bytecode, and none needs a compiler.
public final class FanOut implements ExecutionControl {
  /// First epoch of a rank.
  private static final int FIRST_EPOCH = 1;

  /// Interval of checks of ranks that have not received all messages.
  private static final Duration DELIVERY_POLL = Duration.ofMillis(100);

  private final Future<RankSet> started;
  private final StopChecks stopChecks = new StopChecks();
  private Optional<List<Integer>> selected = Optional.empty();
  private boolean render;
  private int epoch = FIRST_EPOCH;
  private long steps;
  private long ranNanos;
  private volatile RunningCell cell = new RunningCell(new Cell("no cell", ""));
  private @Nullable Invocation running;
  private @Nullable RankDied deadRank;
  private Optional<Map<Integer, Ending>> last = Optional.empty();

  /// Creates the control before the ranks have started, so that the compiler warms up meanwhile;
  /// the first request waits for them.
  public FanOut(Future<RankSet> started) {
    this.started = started;
  }

  private RankSet ranks() {
    return started.resultNow();
  }

  /// Selects the ranks that run the next snippets; all of them load classes.
  public void select(List<Integer> chosen) {
    selected = Optional.of(chosen);
  }

  public void selectAll() {
    selected = Optional.empty();
  }

  public List<RankProcess> selected() {
    return selected
        .map(chosen -> chosen.stream().map(ranks()::get).toList())
        .orElseGet(ranks()::all);
  }

  /// Sets whether the next value is rendered in every format.
  public void render(boolean wanted) {
    render = wanted;
  }

  /// Total execution time of cells on the ranks so far, without compilation; a step takes as long
  /// as its slowest rank.
  public long ranNanos() {
    return ranNanos;
  }

  /// Returns the ranks' endings of the last step; empty if no step ran since the last call.
  public Optional<Map<Integer, Ending>> takeLast() {
    var ended = last;
    last = Optional.empty();
    return ended;
  }

  /// Begins a cell, to which the next requests belong.
  public void begin(RunningCell next) {
    cell = next;
  }

  /// Stops the running request: its cell was interrupted. A request that has not begun needs no
  /// stop, because it looks at its cell.
  @Override
  public synchronized void stop() {
    if (running != null) {
      running.stop();
    }
  }

  /// Reports ranks that have not stopped as ended by the session, which closes next.
  public synchronized void giveUp() {
    if (running != null) {
      running.giveUp();
    }
  }

  /// Returns the ranks that have not ended the running step.
  public synchronized List<Integer> pending() {
    return running == null ? List.of() : running.pending();
  }

  /// Resumes ranks after a failed or interrupted cell: released ranks can wait again, once streams
  /// are idle. Messages sent during the cell travel beside requests, so they must arrive first:
  /// they must not end a later cell.
  public void resume() throws InterruptedException {
    awaitDelivery();
    epoch++;
    var _ = request(ranks().all(), new ToRank.Resume(epoch));
  }

  /// Waits until every rank has received its messages. Frozen ranks are ended soon after an
  /// interrupt of the user, and otherwise after the same time as ranks that do not end a failed
  /// step.
  private void awaitDelivery() throws InterruptedException {
    long start = System.nanoTime();
    var waiting = new ArrayList<>(ranks().all());
    var delivered = waiting.stream().collect(Collectors.toMap(r -> r, RankProcess::delivery));
    while (true) {
      waiting.removeIf(rank -> Objects.requireNonNull(delivered.get(rank)).isDone());
      if (waiting.isEmpty()) {
        return;
      }
      if (mayEnd(start)) {
        waiting.stream().filter(RankProcess::isFrozen).forEach(RankProcess::killFrozen);
      }
      try {
        CompletableFuture.allOf(delivered.values().toArray(CompletableFuture[]::new))
            .completeOnTimeout(null, DELIVERY_POLL.toMillis(), TimeUnit.MILLISECONDS)
            .get();
      } catch (ExecutionException e) {
        throw new IllegalStateException("delivery never fails", e);
      }
    }
  }

  /// Returns true if frozen ranks may be ended, in a wait that began at `startNanos`.
  private boolean mayEnd(long startNanos) {
    long now = System.nanoTime();
    return now - startNanos >= Invocation.KILL_AFTER.toNanos()
        || (cell.isInterrupted()
            && now - cell.interruptedNanos() >= Invocation.FROZEN_GRACE.toNanos());
  }

  /// Marks every rank's output; returns the ranks that answered.
  public List<Integer> mark(long number) throws InterruptedException {
    return request(ranks().all(), new ToRank.Mark(number)).entrySet().stream()
        .filter(e -> e.getValue() instanceof Ending.Answered)
        .map(Map.Entry::getKey)
        .toList();
  }

  private Map<Integer, Ending> request(List<RankProcess> ranks, ToRank message)
      throws InterruptedException {
    var invocation = new Invocation(ranks, ranks().all(), message, cell);
    synchronized (this) {
      running = invocation;
    }
    try {
      return invocation.await();
    } finally {
      synchronized (this) {
        running = null;
      }
    }
  }

  /// Returns the rank that died while it loaded classes, which ends JShell.
  public Optional<Death> deadRank() {
    return Optional.ofNullable(deadRank).map(RankDied::death);
  }

  @Override
  public void load(ClassBytecodes[] classes)
      throws ClassInstallException, EngineTerminationException {
    var message =
        new ToRank.Load(
            stopChecks.weave(classes).stream()
                .map(c -> new ToRank.ClassBytes(c.name(), c.bytecodes()))
                .toList());
    var ended = requestUninterrupted(ranks().all(), message);
    for (var ending : ended.values()) {
      switch (ending) {
        case Ending.Dead(var died, _) -> {
          deadRank = died;
          throw new EngineTerminationException(died.getMessage());
        }
        case Ending.Answered(FromRank.Failed(var failure)) ->
            throw new ClassInstallException(failure.root().toString(), new boolean[classes.length]);
        case Ending.Answered ignored -> {}
      }
    }
  }

  @Override
  public void redefine(ClassBytecodes[] classes) throws NotImplementedException {
    throw new NotImplementedException("classes are never redefined");
  }

  /// Runs one snippet on the selected ranks, unless its cell has been interrupted. The endings are
  /// kept for the session. JShell receives the root cause, so that it maps its stack to the cell's
  /// lines.
  @Override
  public String invoke(String className, String methodName)
      throws RunException, EngineTerminationException {
    last = Optional.empty();
    if (cell.isInterrupted()) {
      throw new StoppedException();
    }
    long start = System.nanoTime();
    var ended =
        requestUninterrupted(selected(), new ToRank.Invoke(className, methodName, render, ++steps));
    ranNanos += System.nanoTime() - start;
    last = Optional.of(ended);
    var failure = rootCause(ended);
    if (failure.isPresent()) {
      throw asRunException(failure.get());
    }
    for (var ending : ended.values()) {
      if (ending instanceof Ending.Dead(RankDied died, _)) {
        throw new UserException(
            died.getMessage(), RankDied.class.getName(), new StackTraceElement[0]);
      }
    }
    return "";
  }

  /// Returns the failure of the lowest rank that was not caused by another rank's failure; else the
  /// lowest rank's failure.
  public static Optional<RankFailure> rootCause(Map<Integer, Ending> ended) {
    var failures =
        ended.entrySet().stream()
            .sorted(Map.Entry.comparingByKey())
            .flatMap(e -> Invocation.failure(e.getValue()).stream())
            .toList();
    return failures.stream()
        .filter(f -> !Invocation.isConsequence(f))
        .findFirst()
        .or(() -> failures.stream().findFirst());
  }

  private static RunException asRunException(RankFailure failure) {
    if (failure.cause() == RankFailure.Cause.UNRESOLVED) {
      return new ResolutionException(failure.unresolvedId(), stack(failure.root()));
    }
    UserException outer = null;
    for (var thrown : failure.chain().reversed()) {
      var link = new UserException(thrown.message(), thrown.className(), stack(thrown));
      if (outer != null) {
        link.initCause(outer);
      }
      outer = link;
    }
    return outer != null
        ? outer
        : new UserException("no reason was given", "java.lang.Throwable", new StackTraceElement[0]);
  }

  private static StackTraceElement[] stack(RankFailure.Thrown thrown) {
    return thrown.stack().toArray(StackTraceElement[]::new);
  }

  @Override
  public String varValue(String className, String varName)
      throws RunException, EngineTerminationException {
    var ended =
        requestUninterrupted(List.of(ranks().get(0)), new ToRank.VarValue(className, varName));
    return switch (ended.get(0)) {
      case Ending.Answered(FromRank.Value(var bundle)) -> bundle.text();
      case Ending.Answered(FromRank.Failed(var failure)) -> throw asRunException(failure);
      case null, default -> throw new EngineTerminationException("rank 0 returned no value");
    };
  }

  @Override
  public void addToClasspath(String path) throws EngineTerminationException, InternalException {
    for (var ending :
        requestUninterrupted(ranks().all(), new ToRank.AddToClasspath(path)).values()) {
      var failure = Invocation.failure(ending);
      if (failure.isPresent()) {
        throw new InternalException(failure.get().root().toString());
      }
    }
  }

  private Map<Integer, Ending> requestUninterrupted(List<RankProcess> ranks, ToRank message)
      throws EngineTerminationException {
    try {
      return request(ranks, message);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new EngineTerminationException("the session's own thread was interrupted");
    }
  }

  @Override
  public Object extensionCommand(String command, Object argument) throws NotImplementedException {
    throw new NotImplementedException("no such command: " + command);
  }

  @Override
  public void close() {}
}
