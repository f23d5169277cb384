package braid.launcher.rank;

import braid.internal.context.RankContext;
import braid.internal.rank.Env;
import braid.internal.shared.SharedFileSweep;
import braid.launcher.InterruptSignal;
import braid.launcher.wire.Connection;
import braid.launcher.wire.FromRank;
import braid.launcher.wire.Hello;
import braid.launcher.wire.OutputMark;
import braid.launcher.wire.RankFailure;
import braid.launcher.wire.ToRank;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.natives.LibC;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;

/// Main class of a rank's JVM: `RankMain FRONT_PORT`, with the rest in the environment. The main
/// thread answers requests and runs the cells; a second thread handles control messages while a
/// cell runs, and detects the end of the front.
public final class RankMain {
  /// Time for a rank to clean up before it exits anyway; the front kills it a little later. A GPU
  /// context takes longer to destroy.
  private static final long EXIT_GRACE_MILLIS = 500;

  private static final long EXIT_GRACE_OF_GPU_MILLIS = 3000;

  /// Ranks that have ended a step and can no longer take part in it.
  private record Departed(long step, Set<Integer> ranks) {}

  private static final long NO_STEP = 0;

  private final Connection execution;
  private final Connection control;
  private final CellEngine engine;
  private final StandardInput input;
  private final StandardOutput stdout = new StandardOutput(FileDescriptor.out, "System.out");
  private final StandardOutput stderr = new StandardOutput(FileDescriptor.err, "System.err");
  private final String token;
  private final RankContext context = RankContext.current();
  private volatile Departed departed = new Departed(NO_STEP, Set.of());
  private volatile long step = NO_STEP;
  private volatile long reportedWaiting = NO_STEP;
  private final FileOutputStream out = new FileOutputStream(FileDescriptor.out);
  private final FileOutputStream err = new FileOutputStream(FileDescriptor.err);

  private RankMain(Connection execution, Connection control, String token, Thread cells) {
    this.execution = execution;
    this.control = control;
    engine = new CellEngine(cells);
    input = new StandardInput(prompt -> sendControl(new FromRank.InputRequest(prompt)));
    this.token = token;
  }

  public static void main(String[] args) throws IOException {
    // The front handles Ctrl-C and informs the ranks.
    InterruptSignal.handle(() -> {});
    int port = Integer.parseInt(args[0]);
    var env = Env.ofProcess();
    var token =
        env.store()
            .map(Env.StoreAddress::token)
            .orElseThrow(() -> new BraidException("a rank needs MASTER_PORT; start it with braid"));
    int rank = env.world().rank();
    long pid = ProcessHandle.current().pid();
    var front = InetAddress.getLoopbackAddress();
    var execution = new Connection(new Socket(front, port));
    execution.greet(token, new Hello(rank, pid, false));
    var control = new Connection(new Socket(front, port));
    control.greet(token, new Hello(rank, pid, true));
    new RankMain(execution, control, token, Thread.currentThread()).serve();
  }

  private void serve() throws IOException {
    System.setOut(stdout);
    System.setErr(stderr);
    System.setIn(input);
    context.outbox(new FrontOutbox(execution));
    context.waits().watch(this::reportWaiting);
    Thread.ofPlatform().daemon().name("braid-control").start(this::serveControl);
    while (true) {
      send(answer(ToRank.read(execution.in())));
    }
  }

  /// Sends an answer. If it is too large to send or to prepare, the cell fails.
  private void send(FromRank.Answer answer) throws IOException {
    try {
      execution.send(answer);
    } catch (BraidException | OutOfMemoryError e) {
      execution.send(new FromRank.Failed(RankFailure.of(RankFailure.Cause.THROWN, -1, e)));
    }
  }

  private FromRank.Answer answer(ToRank message) throws IOException {
    return switch (message) {
      case ToRank.Load load -> engine.load(load);
      case ToRank.Invoke invoke -> invoke(invoke);
      case ToRank.VarValue value -> engine.varValue(value);
      case ToRank.AddToClasspath add -> engine.classpath(add);
      case ToRank.Resume resume -> {
        resume(resume.epoch());
        yield new FromRank.Done();
      }
      case ToRank.Mark mark -> {
        mark(mark.number());
        yield new FromRank.Done();
      }
      case ToRank.Ping ignored -> throw misplaced(message);
      case ToRank.Interrupt ignored -> throw misplaced(message);
      case ToRank.Release ignored -> throw misplaced(message);
      case ToRank.Input ignored -> throw misplaced(message);
      case ToRank.Exit ignored -> throw misplaced(message);
      case ToRank.IdleQuery ignored -> throw misplaced(message);
      case ToRank.Departed ignored -> throw misplaced(message);
    };
  }

  /// Runs a step. If a wait ended because ranks had departed, or waited for each other, the step
  /// fails even if its code caught that: the ranks are at different calls, which only a new epoch
  /// repairs.
  private FromRank.Answer invoke(ToRank.Invoke invoke) {
    step = invoke.step();
    context
        .waits()
        .begin(
            () -> departed.step() == invoke.step() ? departed.ranks() : Set.of(), engine::isAlone);
    var answer = engine.invoke(invoke);
    var departure = context.waits().end();
    restoreStreams();
    return departure == null || answer instanceof FromRank.Failed
        ? answer
        : new FromRank.Failed(RankFailure.of(RankFailure.Cause.THROWN, -1, departure));
  }

  /// Reports to the front, once per step, that the step waits; the front then looks for departed
  /// ranks.
  private void reportWaiting() {
    if (reportedWaiting != step) {
      reportedWaiting = step;
      sendControl(new FromRank.Waiting(step));
    }
  }

  /// Resumes after a failed cell. If that is impossible, for example because a GPU context is lost,
  /// the process ends, which the front detects.
  private void resume(int epoch) {
    try {
      context.resume(epoch);
    } catch (BraidException e) {
      System.err.println("this rank cannot run another cell: " + e.getMessage());
      System.err.flush();
      Runtime.getRuntime().halt(1);
    }
  }

  /// Restores streams. Cells may replace a rank's streams, also for later cells, but not by null.
  private void restoreStreams() {
    if (!stdout.canReplace(System.out)) {
      System.setOut(stdout);
    }
    if (!stderr.canReplace(System.err)) {
      System.setErr(stderr);
    }
    if (System.in == null) {
      System.setIn(input);
    }
  }

  private void mark(long number) throws IOException {
    restoreStreams();
    context.unfinished().forEach(line -> System.err.println("note: " + line));
    System.err.flush();
    LibC.flushAll();
    var mark = new OutputMark(token, number).bytes();
    out.write(mark);
    err.write(mark);
  }

  private static IOException misplaced(ToRank message) {
    return new IOException("not for this connection: " + message);
  }

  private void serveControl() {
    try {
      while (true) {
        switch (ToRank.read(control.in())) {
          case ToRank.Ping ping -> control.send(pong(ping.number()));
          case ToRank.Interrupt() -> engine.interrupt();
          case ToRank.Release release -> context.release(release.reason());
          case ToRank.Input line -> input.answer(line.line(), line.end());
          case ToRank.IdleQuery question ->
              control.send(
                  new FromRank.IdleAnswer(
                      question.number(), !engine.runsCode() && context.isIdle()));
          case ToRank.Departed ended ->
              departed = new Departed(ended.step(), Set.copyOf(ended.ranks()));
          case ToRank.Exit() -> exit();
          case ToRank other -> throw misplaced(other);
        }
      }
    } catch (EOFException | SocketException e) {
      // The front has ended, perhaps killed.
      frontEnded();
    } catch (IOException e) {
      System.err.println("the control connection broke: " + e.getMessage());
      frontEnded();
    }
  }

  private FromRank.Pong pong(long number) throws IOException {
    var runtime = Runtime.getRuntime();
    return new FromRank.Pong(
        number,
        residentBytes(),
        runtime.totalMemory() - runtime.freeMemory(),
        context.waits().current());
  }

  private static long residentBytes() throws IOException {
    for (var line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) {
        return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
      }
    }
    return 0;
  }

  private void exit() {
    long grace =
        context.env().backend() == BackendKind.CUDA ? EXIT_GRACE_OF_GPU_MILLIS : EXIT_GRACE_MILLIS;
    Thread.ofPlatform()
        .daemon()
        .start(
            () -> {
              try {
                Thread.sleep(grace);
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
              Runtime.getRuntime().halt(0);
            });
    try {
      context.close();
    } catch (BraidException e) {
      System.err.println("this rank did not clean up: " + e.getMessage());
    }
    System.exit(0);
  }

  /// Ends the rank after the front has ended. Each rank removes shared files that any of them left
  /// between creating and unlinking them.
  private void frontEnded() {
    var _ = SharedFileSweep.ofSession(token);
    Runtime.getRuntime().halt(1);
  }

  private void sendControl(FromRank message) {
    try {
      control.send(message);
    } catch (IOException e) {
      throw new UncheckedIOException("the front cannot be reached", e);
    }
  }
}
