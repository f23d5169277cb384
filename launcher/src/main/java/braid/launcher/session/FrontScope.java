package braid.launcher.session;

import REPL.$Cancel$;
import braid.MimeBundle;
import braid.internal.rank.Outbox;
import braid.internal.report.Renderings;
import braid.launcher.cell.Cell;
import braid.launcher.compile.CellCompiler;
import braid.launcher.compile.CellCompiler.Piece;
import braid.launcher.compile.CompileError;
import braid.launcher.compile.Origins;
import braid.launcher.output.CellRun;
import braid.launcher.ranks.RankEvent.Channel;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import jdk.jshell.execution.LocalExecutionControl;
import jdk.jshell.spi.ExecutionControl.ClassBytecodes;
import jdk.jshell.spi.ExecutionControl.ClassInstallException;
import jdk.jshell.spi.ExecutionControl.EngineTerminationException;
import jdk.jshell.spi.ExecutionControl.NotImplementedException;
import org.jspecify.annotations.Nullable;

/// Where `%%front` cells live: in the front's own JVM, with variables of their own.
final class FrontScope implements AutoCloseable {
  /// Runs a snippet here and keeps its value as it is.
  private static final class Here extends LocalExecutionControl {
    private @Nullable Object value;

    @Override
    public void load(ClassBytecodes[] classes)
        throws ClassInstallException, NotImplementedException, EngineTerminationException {
      super.load(ExitCalls.refuse(classes));
    }

    @Override
    protected String invoke(Method method) throws ReflectiveOperationException {
      value = method.invoke(null);
      return "";
    }
  }

  /// What the front's cells show goes where their text goes.
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

  private final Gathered gathered;
  private final Here here = new Here();
  private final Origins origins = new Origins();
  private volatile @Nullable Thread running;
  private @Nullable CellCompiler compiler;

  FrontScope(Gathered gathered) {
    this.gathered = gathered;
  }

  Optional<MimeBundle> run(String name, String body, CellRun run) throws CellFailed {
    var cell = new Cell(name, body);
    var out = System.out;
    var err = System.err;
    running = Thread.currentThread();
    Outbox.OF_THREAD.set(new FrontOutbox(run));
    System.setOut(print(run, Channel.STDOUT));
    System.setErr(print(run, Channel.STDERR));
    try {
      return pieces(cell);
    } catch (CompileError e) {
      throw new CellFailed(e.failure());
    } finally {
      System.out.flush();
      System.err.flush();
      System.setOut(out);
      System.setErr(err);
      Outbox.OF_THREAD.remove();
      running = null;
      $Cancel$.stop(false);
      var _ = Thread.interrupted();
    }
  }

  private Optional<MimeBundle> pieces(Cell cell) throws CompileError, CellFailed {
    Optional<MimeBundle> result = Optional.empty();
    var compiling = compiler();
    for (var piece : compiling.split(cell)) {
      if (!(piece instanceof Piece.Java java)) {
        throw new CellFailed(new MagicError("%%front cells hold Java only").failure());
      }
      var origin = new Origins.Origin(cell.name(), java.firstLine(), cell.source());
      origins.expect(origin);
      for (var event : compiling.eval(java.source())) {
        if (event.causeSnippet() != null) {
          continue;
        }
        origins.put(event.snippet().id(), origin);
        var error = compiling.errors(cell, java, event);
        if (error.isPresent()) {
          throw new CellFailed(error.get().failure());
        }
        if (event.exception() != null) {
          throw new CellFailed(
              FailureReport.of(
                  cell, origins, 1, new HashMap<>(Map.of()), event.exception(), false, List.of()));
        }
        result =
            java.shown() && CellCompiler.hasResult(event.snippet())
                ? Optional.of(Renderings.of(here.value))
                : Optional.empty();
      }
    }
    return result;
  }

  private CellCompiler compiler() {
    var made = compiler;
    if (made == null) {
      made = new CellCompiler(here);
      Prelude.imports(made);
      Prelude.eval(made, Prelude.PROFILES.formatted(gathered.name()));
      compiler = made;
    }
    return made;
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

  void interrupt() {
    var thread = running;
    if (thread != null) {
      $Cancel$.stop(true);
      thread.interrupt();
    }
  }

  @Override
  public void close() {
    if (compiler != null) {
      compiler.close();
    }
  }
}
