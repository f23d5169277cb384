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
/// The JDK's `LocalExecutionControl` does the weaving, in what it loads; here it is given a loader
/// that only keeps the outcome. So it is done once, in the front, instead of in every rank.
public final class StopChecks {
  /// Keeps what it is told to load.
  private static final class Kept implements LoaderDelegate {
    private List<ClassBytecodes> classes = new ArrayList<>();

    @Override
    public void load(ClassBytecodes[] woven) {
      classes.addAll(List.of(woven));
    }

    List<ClassBytecodes> take() {
      var taken = classes;
      classes = new ArrayList<>();
      return taken;
    }

    @Override
    public void classesRedefined(ClassBytecodes[] woven) {
      throw new UnsupportedOperationException("classes are loaded anew, never redefined");
    }

    @Override
    public void addToClasspath(String path) {
      throw new UnsupportedOperationException("only ranks have a class path of their own");
    }

    @Override
    public Class<?> findClass(String name) throws ClassNotFoundException {
      throw new ClassNotFoundException(name + ": classes of cells are found in ranks only");
    }
  }

  private final Kept kept = new Kept();
  private final LocalExecutionControl weaving = new LocalExecutionControl(kept);

  /// The same classes, with a stop check in every loop and at the start of every method.
  public List<ClassBytecodes> weave(ClassBytecodes[] classes)
      throws ClassInstallException, EngineTerminationException {
    try {
      weaving.load(classes);
      return kept.take();
    } catch (NotImplementedException e) {
      throw new IllegalStateException("this JDK weaves no stop checks into cells", e);
    }
  }
}
