package braid.launcher.session;

import braid.Display;
import braid.internal.rank.Outbox;
import braid.internal.report.Renderings;
import braid.launcher.cell.Cell;
import braid.launcher.compile.CellCompiler;
import braid.launcher.compile.CellCompiler.Piece;
import braid.launcher.compile.CompileError;
import braid.launcher.compile.Origins;
import braid.launcher.compile.OtherCells;
import braid.launcher.editing.Assistant;
import braid.launcher.output.CellRun;
import braid.launcher.rank.StandardOutput;
import braid.launcher.rank.StoppableRun;
import braid.launcher.ranks.RankEvent.Channel;
import braid.launcher.wire.RankFailure;
import braid.model.MimeBundle;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import jdk.jshell.VarSnippet;
import jdk.jshell.execution.LocalExecutionControl;
import jdk.jshell.spi.ExecutionControl.ClassBytecodes;
import jdk.jshell.spi.ExecutionControl.ClassInstallException;
import jdk.jshell.spi.ExecutionControl.EngineTerminationException;
import jdk.jshell.spi.ExecutionControl.NotImplementedException;
import org.jspecify.annotations.Nullable;

/// Scope of `%%front` cells: the front's own JVM, with its own variables.
final class FrontScope implements AutoCloseable {
  /// Runs a snippet and keeps its value, or the exception.
  private final class FrontExecution extends LocalExecutionControl {
    private final StoppableRun running = new StoppableRun();
    private @Nullable Object value;
    private @Nullable RankFailure failure;

    @Override
    public void load(ClassBytecodes[] classes)
        throws ClassInstallException, NotImplementedException, EngineTerminationException {
      super.load(ExitCalls.refuse(classes));
    }

    /// Invokes a snippet. An interrupt during its compilation stops it at once.
    @Override
    protected String invoke(Method method) throws ReflectiveOperationException {
      var out = System.out;
      var err = System.err;
      failure = null;
      running.begin();
      try {
        if (interrupted.getAsBoolean()) {
          FrontScope.this.stop();
        }
        value = method.invoke(null);
        return "";
      } catch (InvocationTargetException e) {
        failure = running.failure(e.getCause() == null ? e : e.getCause());
        throw e;
      } finally {
        running.end();
        restore(out, err);
      }
    }

    /// Restores null streams: the JDK's engine would fail without them, and so would all output of
    /// the front.
    private void restore(PrintStream out, PrintStream err) {
      if (System.err == null) {
        System.setErr(err);
        err.println(StandardOutput.unset("System.err"));
      }
      if (System.out == null) {
        System.setOut(out);
        System.err.println(StandardOutput.unset("System.out"));
      }
    }
  }

  /// Sends displays of front cells to the cell's output.
  private record FrontOutbox(CellRun run) implements Outbox {
    @Override
    public void publish(MimeBundle bundle) {}

    @Override
    public void display(MimeBundle bundle, String displayId) {
      run.shown(bundle, displayId, false);
    }

    @Override
    public void update(MimeBundle bundle, String displayId) {
      run.shown(bundle, displayId, true);
    }
  }

  private final GatheredEvidence gathered;
  private final BooleanSupplier interrupted;
  private final FrontExecution execution = new FrontExecution();
  private final Origins origins = new Origins();
  private final OtherCells ranks;
  private volatile @Nullable CellCompiler compiler;

  /// Creates the scope; `interrupted` is true while the running cell is interrupted, and `onRanks`
  /// for a name that cells of the ranks have declared.
  FrontScope(GatheredEvidence gathered, BooleanSupplier interrupted, Predicate<String> onRanks) {
    this.gathered = gathered;
    this.interrupted = interrupted;
    ranks = OtherCells.ranks(onRanks);
  }

  Optional<MimeBundle> run(String name, String body, CellRun run) throws CellFailed {
    var cell = new Cell(name, body);
    var out = System.out;
    var err = System.err;
    Outbox.OF_THREAD.set(new FrontOutbox(run));
    var printed = print(run, Channel.STDOUT);
    var errors = print(run, Channel.STDERR);
    System.setOut(printed);
    System.setErr(errors);
    try {
      return pieces(cell);
    } catch (CompileError e) {
      throw new CellFailed(e.failure());
    } finally {
      printed.flush();
      errors.flush();
      System.setOut(out);
      System.setErr(err);
      Outbox.OF_THREAD.remove();
    }
  }

  private Optional<MimeBundle> pieces(Cell cell) throws CompileError, CellFailed {
    Optional<MimeBundle> result = Optional.empty();
    var compiling = compiler();
    for (var piece : compiling.split(cell)) {
      if (!(piece instanceof Piece.Java java)) {
        throw new CellFailed(new MagicError("%%front cells hold Java only").failure());
      }
      if (interrupted.getAsBoolean()) {
        throw new CellFailed(FailureReport.interrupted(cell));
      }
      var origin = new Origins.Origin(cell.name(), java.firstLine(), cell.source());
      origins.expect(origin);
      for (var event : compiling.eval(java.source())) {
        if (event.causeSnippet() != null) {
          continue;
        }
        origins.put(event.snippet().id(), origin);
        var error = compiling.errors(cell, java, event, ranks);
        if (error.isPresent()) {
          throw new CellFailed(error.get().failure());
        }
        if (event.snippet() instanceof VarSnippet variable) {
          origins.declared(variable.name(), event.exception() == null);
        }
        if (event.exception() != null) {
          throw failed(cell, execution.failure, event.exception());
        }
        result =
            java.shown()
                    && CellCompiler.hasResult(event.snippet())
                    && !(execution.value instanceof Display)
                ? Optional.of(rendered(cell))
                : Optional.empty();
      }
    }
    return result;
  }

  private MimeBundle rendered(Cell cell) throws CellFailed {
    try {
      return Renderings.of(execution.value);
    } catch (RuntimeException | Error e) {
      // Thrown by the value's own `toString`.
      throw failed(cell, RankFailure.of(RankFailure.Cause.THROWN, -1, e), null);
    }
  }

  private CellFailed failed(Cell cell, @Nullable RankFailure failure, @Nullable Throwable mapped) {
    return new CellFailed(
        FailureReport.ofFront(
            cell, origins, Optional.ofNullable(failure), mapped, interrupted.getAsBoolean()));
  }

  /// Returns true if a front cell can use a name that is declared here.
  synchronized boolean declares(String name) {
    var current = compiler;
    return current == null
        ? Prelude.PROFILES.startsWith("var " + name + " ")
        : current.declares(name);
  }

  /// Returns the compiler and the origins, for editors.
  Assistant.Scope assistant() {
    return new Assistant.Scope(compiler(), origins);
  }

  private synchronized CellCompiler compiler() {
    var current = compiler;
    if (current == null) {
      current = new CellCompiler(execution);
      Prelude.imports(current);
      Prelude.eval(current, Prelude.PROFILES.formatted(gathered.name()));
      compiler = current;
    }
    return current;
  }

  private static PrintStream print(CellRun run, Channel channel) {
    return new PrintStream(
        new OutputStream() {
          @Override
          public void write(int b) {
            write(new byte[] {(byte) b}, 0, 1);
          }

          @Override
          public void write(byte[] bytes, int offset, int length) {
            run.printed(channel, new String(bytes, offset, length, StandardCharsets.UTF_8));
          }
        },
        true,
        StandardCharsets.UTF_8);
  }

  /// Stops the running snippet, if any. The scope's own declarations are never stopped.
  void stop() {
    if (compiler != null) {
      execution.running.stop();
    }
  }

  @Override
  public void close() {
    var current = compiler;
    if (current != null) {
      current.close();
    }
  }
}
