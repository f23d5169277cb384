package braid.launcher.fanout;

import java.util.ArrayList;
import java.util.List;
import jdk.jshell.execution.LoaderDelegate;
import jdk.jshell.execution.LocalExecutionControl;
import jdk.jshell.spi.ExecutionControl.ClassBytecodes;
import jdk.jshell.spi.ExecutionControl.ClassInstallException;
import jdk.jshell.spi.ExecutionControl.EngineTerminationException;
import jdk.jshell.spi.ExecutionControl.NotImplementedException;

/// Weaves a stop check into every loop of a cell, so that a cell that never waits can be stopped.
/// The JDK's `LocalExecutionControl` weaves the classes it loads; here its loader only collects
/// them. So weaving is done once, in the front, instead of in every rank.
public final class StopChecks {
  /// Collects the woven classes.
  private static final class WovenClasses implements LoaderDelegate {
    private List<ClassBytecodes> classes = new ArrayList<>();

    @Override
    public void load(ClassBytecodes[] loaded) {
      classes.addAll(List.of(loaded));
    }

    List<ClassBytecodes> take() {
      var taken = classes;
      classes = new ArrayList<>();
      return taken;
    }

    @Override
    public void classesRedefined(ClassBytecodes[] woven) {
      throw new UnsupportedOperationException("classes are never redefined");
    }

    @Override
    public void addToClasspath(String path) {
      throw new UnsupportedOperationException("only ranks have a class path");
    }

    @Override
    public Class<?> findClass(String name) throws ClassNotFoundException {
      throw new ClassNotFoundException(name + ": classes of cells are found in ranks only");
    }
  }

  private final WovenClasses woven = new WovenClasses();
  private final LocalExecutionControl weaving = new LocalExecutionControl(woven);

  /// Returns the classes with a stop check in every loop and at the start of every method.
  public List<ClassBytecodes> weave(ClassBytecodes[] classes)
      throws ClassInstallException, EngineTerminationException {
    try {
      weaving.load(classes);
      return woven.take();
    } catch (NotImplementedException e) {
      throw new IllegalStateException("this JDK weaves no stop checks into cells", e);
    }
  }
}
