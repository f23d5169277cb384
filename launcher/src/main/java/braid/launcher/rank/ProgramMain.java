package braid.launcher.rank;

import braid.model.BraidException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/// Calls `main` of a program on this rank, as `java` would.
public final class ProgramMain {
  private ProgramMain() {}

  /// Calls `main`, with the arguments if it takes them, on an instance if it is not static.
  public static void run(String className, String... arguments) throws Throwable {
    var type = Class.forName(className, true, Thread.currentThread().getContextClassLoader());
    var main =
        Arrays.stream(type.getDeclaredMethods())
            .filter(ProgramMain::isMain)
            .max(Comparator.comparingInt(Method::getParameterCount))
            .orElseThrow(
                () -> new BraidException(className + " must have a method main but has none"));
    main.setAccessible(true);
    try {
      Object instance = null;
      if (!Modifier.isStatic(main.getModifiers())) {
        var constructor = type.getDeclaredConstructor();
        constructor.setAccessible(true);
        instance = constructor.newInstance();
      }
      main.invoke(
          instance, main.getParameterCount() == 0 ? new Object[0] : new Object[] {arguments});
    } catch (InvocationTargetException e) {
      throw e.getCause() == null ? e : ended(e.getCause(), className);
    }
  }

  /// Ends the stack at `main`, as `java` prints it.
  private static Throwable ended(Throwable thrown, String className) {
    var stack = List.of(thrown.getStackTrace());
    var main =
        stack.reversed().stream()
            .filter(f -> f.getClassName().equals(className) && f.getMethodName().equals("main"))
            .findFirst();
    main.ifPresent(
        frame ->
            thrown.setStackTrace(
                stack.subList(0, stack.lastIndexOf(frame) + 1).toArray(StackTraceElement[]::new)));
    return thrown;
  }

  private static boolean isMain(Method method) {
    return method.getName().equals("main")
        && method.getReturnType() == void.class
        && !Modifier.isPrivate(method.getModifiers())
        && (method.getParameterCount() == 0
            || Arrays.equals(method.getParameterTypes(), new Class<?>[] {String[].class}));
  }
}
