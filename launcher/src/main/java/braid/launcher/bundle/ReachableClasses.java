package braid.launcher.bundle;

import java.lang.classfile.ClassFile;
import java.lang.classfile.constantpool.ClassEntry;
import java.util.ArrayDeque;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/// Computes the classes of a large library that can be loaded: those that other classes reference,
/// and transitively theirs.
final class ReachableClasses {
  private ReachableClasses() {}

  /// @param classes all classes by internal name (`java/lang/Object`)
  /// @param pruned true for classes of the library to prune; all others are kept
  /// @return the names of all classes to keep
  static Set<String> of(Map<String, byte[]> classes, Predicate<String> pruned) {
    var reached = new HashSet<String>();
    var open = new ArrayDeque<String>();
    for (var name : classes.keySet()) {
      if (!pruned.test(name)) {
        reached.add(name);
        open.add(name);
      }
    }
    while (!open.isEmpty()) {
      var bytes = classes.get(open.remove());
      if (bytes == null) {
        continue;
      }
      for (var entry : ClassFile.of().parse(bytes).constantPool()) {
        if (entry instanceof ClassEntry named) {
          var name = element(named.asInternalName());
          if (classes.containsKey(name) && reached.add(name)) {
            open.add(name);
          }
        }
      }
    }
    return reached;
  }

  /// Returns the element type of an array: `[[La/B;` is an array of `a/B`.
  private static String element(String name) {
    var element = name.replaceFirst("^\\[+", "");
    return element.length() < name.length() && element.startsWith("L")
        ? element.substring(1, element.length() - 1)
        : element;
  }
}
