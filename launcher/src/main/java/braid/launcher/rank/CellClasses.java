package braid.launcher.rank;

import braid.launcher.wire.ToRank;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Class loader of cells' classes. It searches them first: a cell's class is on no class path, and
/// searching every jar of Braid for it would take a rank longer than running it.
final class CellClasses extends URLClassLoader {
  static {
    registerAsParallelCapable();
  }

  /// Received classes that are not yet defined: a class may refer to others of the same message.
  private final Map<String, byte[]> undefined = new ConcurrentHashMap<>();

  CellClasses() {
    super(new URL[0], CellClasses.class.getClassLoader());
  }

  /// Defines classes that arrived together.
  void define(List<ToRank.ClassBytes> classes) throws ClassNotFoundException {
    classes.forEach(c -> undefined.put(c.name(), c.bytes()));
    for (var c : classes) {
      var _ = loadClass(c.name());
    }
  }

  /// Adds a directory or jar to the class path of later cells.
  void addToClasspath(String path) throws MalformedURLException {
    addURL(Path.of(path).toUri().toURL());
  }

  /// Returns true if the class belongs to a cell, or to a jar that a cell added.
  boolean has(String name) {
    var loaded = findLoadedClass(name);
    return loaded != null && loaded.getClassLoader() == this;
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    synchronized (getClassLoadingLock(name)) {
      var known = ofCells(name);
      return known != null ? known : super.loadClass(name, resolve);
    }
  }

  private @Nullable Class<?> ofCells(String name) {
    var loaded = findLoadedClass(name);
    if (loaded != null) {
      return loaded;
    }
    var bytes = undefined.remove(name);
    return bytes == null ? null : defineClass(name, bytes, 0, bytes.length);
  }
}
