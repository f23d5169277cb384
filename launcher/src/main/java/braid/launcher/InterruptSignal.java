package braid.launcher;

import java.lang.invoke.MethodHandleProxies;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.InvocationTargetException;

/// Installs handlers for SIGINT and other signals that would end the JVM. Ctrl-C in a terminal
/// sends SIGINT to all its foreground processes, including the ranks. The JDK's only signal API,
/// `sun.misc.Signal`, is looked up by reflection, because javac warns of any direct use.
public final class InterruptSignal {
  private InterruptSignal() {}

  public static void handle(Runnable interrupt) {
    handle("INT", interrupt);
  }

  /// @param name signal name without the leading SIG; a signal that this process was started to
  ///   ignore stays ignored
  public static void handle(String name, Runnable action) {
    try {
      var signal = Class.forName("sun.misc.Signal");
      var handler = Class.forName("sun.misc.SignalHandler");
      var run =
          MethodHandles.lookup()
              .findVirtual(Runnable.class, "run", MethodType.methodType(void.class))
              .bindTo(action);
      signal
          .getMethod("handle", signal, handler)
          .invoke(
              null,
              signal.getConstructor(String.class).newInstance(name),
              MethodHandleProxies.asInterfaceInstance(
                  handler, MethodHandles.dropArguments(run, 0, signal)));
    } catch (InvocationTargetException e) {
      throw new IllegalStateException("SIG" + name + " cannot be handled", e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this JDK has no jdk.unsupported module", e);
    }
  }
}
