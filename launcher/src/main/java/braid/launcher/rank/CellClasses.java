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

/// The classes that cells declared. They are looked for here first: a cell's class is on no class
/// path, and to look for it in every jar of Braid's before it is defined takes a rank longer than
/// to run it.
final class CellClasses extends URLClassLoader {
  static {
    registerAsParallelCapable();
  }

  /// Told, not yet defined: a class may name others that came with it.
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

  /// Later cells find classes of this directory or jar too.
  void addToClasspath(String path) throws MalformedURLException {
    addURL(Path.of(path).toUri().toURL());
  }

  /// Whether the class of that name is a cell's, or of a jar that a cell added.
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
