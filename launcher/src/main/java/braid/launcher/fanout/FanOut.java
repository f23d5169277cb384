package braid.launcher.fanout;

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

/// The seam where compiling ends and running begins: JShell compiles once, here, and what it wants
/// loaded and run is loaded and run by every rank. So all ranks run the same bytecode, and none
/// needs a compiler.
public final class FanOut implements ExecutionControl {
  /// The epoch in which a rank begins.
  private static final int FIRST_EPOCH = 1;

  /// How often ranks are looked at that have not heard what they were told.
  private static final Duration HEARING_POLL = Duration.ofMillis(100);

  private final Future<RankSet> started;
  private final StopChecks stopChecks = new StopChecks();
  private Optional<List<Integer>> selected = Optional.empty();
  private boolean render;
  private int epoch = FIRST_EPOCH;
  private long steps;
  private long ranNanos;
  private long loadNanos;
  private @Nullable Invocation running;
  private boolean stopWanted;
  private long stopNanos;
  private boolean insisted;
  private boolean interruptedBefore;
  private boolean disturbed;
  private @Nullable RankDied lost;
  private Optional<Map<Integer, Ending>> last = Optional.empty();

  /// The compiler warms up while the ranks start: they are waited for when they are first needed.
  public FanOut(Future<RankSet> started) {
    this.started = started;
  }

  private RankSet ranks() {
    return started.resultNow();
  }

  /// Which ranks run what comes next; all of them load it.
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

  /// Whether the value of what runs next is wanted in every form.
  public void render(boolean wanted) {
    render = wanted;
  }

  /// For how long cells have run on the ranks so far, compiling left out; a step lasts as long as
  /// its slowest rank.
  public long ranNanos() {
    return ranNanos;
  }

  /// For how long classes were brought to the ranks so far.
  public long loadNanos() {
    return loadNanos;
  }

  /// How the ranks ended the last step that ran; empty if none ran since this was last asked.
  public Optional<Map<Integer, Ending>> takeLast() {
    var ended = last;
    last = Optional.empty();
    return ended;
  }

  /// A new cell begins: nobody wants it stopped yet.
  public synchronized void begin() {
    stopWanted = false;
    insisted = false;
  }

  /// Ends the step that runs; one of this cell's that has not begun yet, because it is still being
  /// compiled, ends as soon as it does.
  public synchronized void interrupt() {
    wantStop();
    if (running != null) {
      running.interrupt();
    }
  }

  /// Ends the step that runs, and the ranks that do not stop: an interrupt before this one did not
  /// end the cell.
  public synchronized void insist() {
    wantStop();
    insisted = true;
    if (running != null) {
      running.insist();
    }
  }

  private void wantStop() {
    if (!stopWanted) {
      stopWanted = true;
      stopNanos = System.nanoTime();
    }
  }

  /// Whether the user insists that this cell end.
  public synchronized boolean insisted() {
    return insisted;
  }

  /// The ranks that have not ended the step that runs.
  public synchronized List<Integer> pending() {
    return running == null ? List.of() : running.pending();
  }

  /// Whether ranks must [#resume] though no step failed: what they were told to end ended well.
  public boolean disturbed() {
    return disturbed;
  }

  /// After a failed or interrupted cell: whoever was released can wait again, once streams have
  /// come to rest. What ranks were told in the middle of the cell travels beside the requests, so
  /// it is let arrive first: it must not end a later cell.
  public void resume() throws InterruptedException {
    awaitHearing();
    disturbed = false;
    epoch++;
    var _ = ask(ranks().all(), new ToRank.Resume(epoch));
  }

  /// Waits until every rank has heard what it was told. A frozen one is ended when the user wants
  /// the cell to end, and else as late as one that does not end a failed step.
  private void awaitHearing() throws InterruptedException {
    long start = System.nanoTime();
    var waiting = new ArrayList<>(ranks().all());
    var heard = waiting.stream().collect(Collectors.toMap(r -> r, RankProcess::hearing));
    while (true) {
      waiting.removeIf(rank -> Objects.requireNonNull(heard.get(rank)).isDone());
      if (waiting.isEmpty()) {
        return;
      }
      if (mayEnd(start)) {
        waiting.stream().filter(RankProcess::isFrozen).forEach(RankProcess::killFrozen);
      }
      try {
        CompletableFuture.allOf(heard.values().toArray(CompletableFuture[]::new))
            .completeOnTimeout(null, HEARING_POLL.toMillis(), TimeUnit.MILLISECONDS)
            .get();
      } catch (ExecutionException e) {
        throw new IllegalStateException("hearing never fails", e);
      }
    }
  }

  /// Whether frozen ranks may be ended, in a wait that began then.
  private synchronized boolean mayEnd(long startNanos) {
    long now = System.nanoTime();
    return now - startNanos >= Invocation.KILL_AFTER.toNanos()
        || (stopWanted && now - stopNanos >= Invocation.FROZEN_GRACE.toNanos());
  }

  /// Marks every rank's output; returns the ranks that did.
  public List<Integer> mark(long number) throws InterruptedException {
    return ask(ranks().all(), new ToRank.Mark(number)).entrySet().stream()
        .filter(e -> e.getValue() instanceof Ending.Answered)
        .map(Map.Entry::getKey)
        .toList();
  }

  private Map<Integer, Ending> ask(List<RankProcess> whom, ToRank message)
      throws InterruptedException {
    var invocation = new Invocation(whom, ranks().all(), message);
    synchronized (this) {
      running = invocation;
      if (stopWanted) {
        invocation.stopWanted(stopNanos);
        if (message instanceof ToRank.Invoke) {
          invocation.interrupt();
        }
      }
      if (insisted) {
        invocation.insist();
      }
    }
    try {
      var ended = invocation.await();
      interruptedBefore = invocation.wasInterrupted();
      disturbed |= invocation.disturbed();
      return ended;
    } finally {
      synchronized (this) {
        running = null;
      }
    }
  }

  /// The rank that died while classes were brought to it, which ends JShell.
  public Optional<Death> lost() {
    return Optional.ofNullable(lost).map(RankDied::death);
  }

  public boolean wasInterrupted() {
    return interruptedBefore;
  }

  @Override
  public void load(ClassBytecodes[] classes)
      throws ClassInstallException, EngineTerminationException {
    long start = System.nanoTime();
    var message =
        new ToRank.Load(
            stopChecks.weave(classes).stream()
                .map(c -> new ToRank.ClassBytes(c.name(), c.bytecodes()))
                .toList());
    var ended = askUninterrupted(ranks().all(), message);
    loadNanos += System.nanoTime() - start;
    for (var ending : ended.values()) {
      switch (ending) {
        case Ending.Dead(var died, _) -> {
          lost = died;
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
    throw new NotImplementedException("classes are loaded anew, never redefined");
  }

  /// Runs one snippet on the selected ranks. What came of it is kept for the session; JShell is
  /// told the root cause, so that it maps its stack to the cell's own lines.
  @Override
  public String invoke(String className, String methodName)
      throws RunException, EngineTerminationException {
    long start = System.nanoTime();
    var ended =
        askUninterrupted(selected(), new ToRank.Invoke(className, methodName, render, ++steps));
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

  /// The failure of the lowest rank that is nobody else's consequence; else the lowest failure.
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
    if (failure.kind() == RankFailure.Kind.UNRESOLVED) {
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
    var ended = askUninterrupted(List.of(ranks().get(0)), new ToRank.VarValue(className, varName));
    return switch (ended.get(0)) {
      case Ending.Answered(FromRank.Value(var bundle)) -> bundle.text();
      case Ending.Answered(FromRank.Failed(var failure)) -> throw asRunException(failure);
      case null, default -> throw new EngineTerminationException("rank 0 gave no value");
    };
  }

  @Override
  public void addToClasspath(String path) throws EngineTerminationException, InternalException {
    for (var ending : askUninterrupted(ranks().all(), new ToRank.AddToClasspath(path)).values()) {
      var failure = Invocation.failure(ending);
      if (failure.isPresent()) {
        throw new InternalException(failure.get().root().toString());
      }
    }
  }

  private Map<Integer, Ending> askUninterrupted(List<RankProcess> whom, ToRank message)
      throws EngineTerminationException {
    try {
      return ask(whom, message);
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
  public void stop() {
    interrupt();
  }

  @Override
  public void close() {}
}
