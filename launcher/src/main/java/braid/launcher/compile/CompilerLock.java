package braid.launcher.compile;

import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import jdk.jshell.spi.ExecutionControl;

/// Lock of the compiler. JShell is not thread-safe, but editors query it while cells run.
/// Compilation and queries hold the lock; execution on the ranks, which may take hours, does not.
final class CompilerLock {
  private final ReentrantLock lock = new ReentrantLock(/* fair= */ true);

  <T> T hold(Supplier<T> action) {
    lock.lock();
    try {
      return action.get();
    } finally {
      lock.unlock();
    }
  }

  /// Runs an action under the lock without blocking the caller: at once if the lock is free, else
  /// on a new thread that waits for the lock.
  void whenFree(Runnable action) {
    if (lock.tryLock()) {
      try {
        action.run();
      } finally {
        lock.unlock();
      }
    } else {
      Thread.ofVirtual()
          .name("braid-compiler-close")
          .start(
              () ->
                  hold(
                      () -> {
                        action.run();
                        return true;
                      }));
    }
  }

  private interface Execution {
    String run()
        throws ExecutionControl.RunException,
            ExecutionControl.EngineTerminationException,
            ExecutionControl.InternalException;
  }

  private String released(Execution execution)
      throws ExecutionControl.RunException,
          ExecutionControl.EngineTerminationException,
          ExecutionControl.InternalException {
    int holds = lock.getHoldCount();
    for (int i = 0; i < holds; i++) {
      lock.unlock();
    }
    try {
      return execution.run();
    } finally {
      for (int i = 0; i < holds; i++) {
        lock.lock();
      }
    }
  }

  /// Returns a control that releases the lock while code runs.
  ExecutionControl releasedWhileRunning(ExecutionControl control) {
    return new ExecutionControl() {
      @Override
      public void load(ClassBytecodes[] classes)
          throws ClassInstallException, NotImplementedException, EngineTerminationException {
        control.load(classes);
      }

      @Override
      public void redefine(ClassBytecodes[] classes)
          throws ClassInstallException, NotImplementedException, EngineTerminationException {
        control.redefine(classes);
      }

      @Override
      public String invoke(String className, String methodName)
          throws RunException, EngineTerminationException, InternalException {
        return released(() -> control.invoke(className, methodName));
      }

      @Override
      public String varValue(String className, String varName)
          throws RunException, EngineTerminationException, InternalException {
        return released(() -> control.varValue(className, varName));
      }

      @Override
      public void addToClasspath(String path) throws EngineTerminationException, InternalException {
        control.addToClasspath(path);
      }

      @Override
      public void stop() throws EngineTerminationException, InternalException {
        control.stop();
      }

      @Override
      public Object extensionCommand(String command, Object argument)
          throws RunException, EngineTerminationException, InternalException {
        return control.extensionCommand(command, argument);
      }

      @Override
      public void close() {
        control.close();
      }
    };
  }
}
