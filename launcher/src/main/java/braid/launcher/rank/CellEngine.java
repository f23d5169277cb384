package braid.launcher.rank;

import REPL.$Cancel$;
import braid.GroupAborted;
import braid.internal.evidence.HandedOver;
import braid.launcher.wire.FromRank;
import braid.launcher.wire.RankFailure;
import braid.launcher.wire.RankFailure.Kind;
import braid.launcher.wire.ToRank;
import java.io.InterruptedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.MalformedURLException;
import java.nio.channels.ClosedByInterruptException;
import jdk.jshell.spi.SPIResolutionException;

/// Loads and runs what the front compiled. The JDK has such engines too, but they turn values,
/// causes and stacks into strings, which a rank keeps.
final class CellEngine {
  private final CellClasses classes = new CellClasses();
  private final Thread thread;
  private final Object stopping = new Object();
  private boolean running;
  private boolean stopped;

  CellEngine(Thread thread) {
    this.thread = thread;
    thread.setContextClassLoader(classes);
  }

  FromRank.Answer load(ToRank.Load load) {
    try {
      classes.define(load.classes());
      return new FromRank.Done();
    } catch (ClassNotFoundException | LinkageError e) {
      return internal(e);
    }
  }

  FromRank.Answer classpath(ToRank.AddToClasspath add) {
    try {
      classes.addToClasspath(add.path());
      return new FromRank.Done();
    } catch (MalformedURLException e) {
      return internal(e);
    }
  }

  /// Runs on the calling thread, which is the one that `interrupt` interrupts.
  FromRank.Answer invoke(ToRank.Invoke invoke) {
    Method method;
    try {
      method = classes.loadClass(invoke.className()).getDeclaredMethod(invoke.methodName());
      method.setAccessible(true);
    } catch (ReflectiveOperationException | LinkageError e) {
      return internal(e);
    }
    synchronized (stopping) {
      running = true;
    }
    try {
      var value = method.invoke(null);
      return invoke.render() ? new FromRank.Value(HandedOver.onRank(value)) : new FromRank.Done();
    } catch (InvocationTargetException e) {
      return failure(e.getCause() == null ? e : e.getCause());
    } catch (IllegalAccessException e) {
      return internal(e);
    } catch (Throwable e) {
      // Thrown while the value was turned into text: the cell's own toString.
      return failure(e);
    } finally {
      synchronized (stopping) {
        running = false;
        stopped = false;
        $Cancel$.stop(false);
        var _ = Thread.interrupted();
      }
    }
  }

  FromRank.Answer varValue(ToRank.VarValue value) {
    try {
      var field = classes.loadClass(value.className()).getDeclaredField(value.varName());
      field.setAccessible(true);
      return new FromRank.Value(HandedOver.onRank(field.get(null)));
    } catch (ReflectiveOperationException | LinkageError e) {
      return internal(e);
    } catch (Throwable e) {
      return failure(e);
    }
  }

  /// Stops the cell that runs, from another thread.
  void interrupt() {
    synchronized (stopping) {
      if (running) {
        stopped = true;
        $Cancel$.stop(true);
        thread.interrupt();
      }
    }
  }

  private boolean wasStopped() {
    synchronized (stopping) {
      return stopped;
    }
  }

  private FromRank.Failed failure(Throwable thrown) {
    if (thrown instanceof SPIResolutionException unresolved) {
      return new FromRank.Failed(RankFailure.of(Kind.UNRESOLVED, unresolved.id(), thrown));
    }
    boolean byStop = Thread.currentThread().isInterrupted() || endedByStop(thrown);
    var kind = byStop && wasStopped() ? Kind.STOPPED : Kind.THROWN;
    return new FromRank.Failed(RankFailure.of(kind, -1, thrown));
  }

  /// What a stop throws may come wrapped in what the cell, or a library it uses, made of it.
  private static boolean endedByStop(Throwable thrown) {
    return RankFailure.chain(thrown).stream()
        .anyMatch(
            t ->
                t instanceof CellStopped
                    || t instanceof InterruptedException
                    || t instanceof InterruptedIOException
                    || t instanceof ClosedByInterruptException
                    || t instanceof GroupAborted);
  }

  private static FromRank.Failed internal(Throwable thrown) {
    return new FromRank.Failed(RankFailure.of(Kind.INTERNAL, -1, thrown));
  }
}
