package braid.launcher.compile;

import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import jdk.jshell.spi.ExecutionControl;

/// JShell is made for one thread, and editors ask while cells run. So who compiles and who asks
/// take turns; what runs on the ranks, which may take hours, is nobody's turn.
final class Turns {
  private final ReentrantLock lock = new ReentrantLock(/* fair= */ true);

  <T> T take(Supplier<T> turn) {
    lock.lock();
    try {
      return turn.get();
    } finally {
      lock.unlock();
    }
  }

  /// Takes the turn without waiting for it: now, or on a thread of its own as soon as it is free.
  void whenFree(Runnable turn) {
    if (lock.tryLock()) {
      try {
        turn.run();
      } finally {
        lock.unlock();
      }
    } else {
      Thread.ofVirtual()
          .name("braid-compiler-close")
          .start(
              () ->
                  take(
                      () -> {
                        turn.run();
                        return true;
                      }));
    }
  }

  private interface Running {
    String run()
        throws ExecutionControl.RunException,
            ExecutionControl.EngineTerminationException,
            ExecutionControl.InternalException;
  }

  private String outOfTurn(Running running)
      throws ExecutionControl.RunException,
          ExecutionControl.EngineTerminationException,
          ExecutionControl.InternalException {
    int holds = lock.getHoldCount();
    for (int i = 0; i < holds; i++) {
      lock.unlock();
    }
    try {
      return running.run();
    } finally {
      for (int i = 0; i < holds; i++) {
        lock.lock();
      }
    }
  }

  /// The same control, which gives the turn up while something runs.
  ExecutionControl around(ExecutionControl control) {
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
        return outOfTurn(() -> control.invoke(className, methodName));
      }

      @Override
      public String varValue(String className, String varName)
          throws RunException, EngineTerminationException, InternalException {
        return outOfTurn(() -> control.varValue(className, varName));
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
