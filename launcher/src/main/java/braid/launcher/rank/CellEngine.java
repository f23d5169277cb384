package braid.launcher.rank;

import braid.Display;
import braid.internal.evidence.RankValues;
import braid.launcher.wire.FromRank;
import braid.launcher.wire.RankFailure;
import braid.launcher.wire.RankFailure.Cause;
import braid.launcher.wire.ToRank;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.MalformedURLException;

/// Loads and runs compiled cells. The JDK's engines convert values, causes and stacks to strings; a
/// rank keeps them.
final class CellEngine {
  private final CellClasses classes = new CellClasses();
  private final StoppableRun run = new StoppableRun();

  CellEngine(Thread thread) {
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

  /// Runs a snippet on the calling thread, which `interrupt` interrupts.
  FromRank.Answer invoke(ToRank.Invoke invoke) {
    Method method;
    try {
      method = classes.loadClass(invoke.className()).getDeclaredMethod(invoke.methodName());
      method.setAccessible(true);
    } catch (ReflectiveOperationException | LinkageError e) {
      return internal(e);
    }
    run.begin();
    try {
      var value = method.invoke(null);
      // A display has been shown already.
      return invoke.render() && !(value instanceof Display)
          ? new FromRank.Value(RankValues.bundle(value))
          : new FromRank.Done();
    } catch (InvocationTargetException e) {
      return failure(e.getCause() == null ? e : e.getCause());
    } catch (IllegalAccessException e) {
      return internal(e);
    } catch (Throwable e) {
      // Thrown by the cell's own toString.
      return failure(e);
    } finally {
      run.end();
    }
  }

  FromRank.Answer varValue(ToRank.VarValue value) {
    try {
      var field = classes.loadClass(value.className()).getDeclaredField(value.varName());
      field.setAccessible(true);
      return new FromRank.Value(RankValues.bundle(field.get(null)));
    } catch (ReflectiveOperationException | LinkageError e) {
      return internal(e);
    } catch (Throwable e) {
      return failure(e);
    }
  }

  /// Returns true if code of a cell runs in this rank, in the cell or in a thread that it started.
  boolean runsCode() {
    return CellThreads.any(classes::has);
  }

  /// Returns true if no thread but the calling one runs code of a cell.
  boolean isAlone() {
    return !CellThreads.anyOther(classes::has, Thread.currentThread());
  }

  /// Stops the running cell, from another thread.
  void interrupt() {
    run.stop();
  }

  private FromRank.Failed failure(Throwable thrown) {
    return new FromRank.Failed(run.failure(thrown));
  }

  private static FromRank.Failed internal(Throwable thrown) {
    return new FromRank.Failed(RankFailure.of(Cause.INTERNAL, -1, thrown));
  }
}
