package braid.launcher.bundle;

import java.lang.classfile.ClassFile;
import java.lang.classfile.constantpool.ClassEntry;
import java.util.ArrayDeque;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/// Which classes of a large library can ever be loaded: those that other classes name, and those
/// that these name.
final class ReachableClasses {
  private ReachableClasses() {}

  /// @param classes all there are, by their internal names (`java/lang/Object`)
  /// @param pruned whether a class is of the library that is to be pruned; all others are kept
  /// @return the names of all classes that must stay
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

  /// `[[La/B;` is an array of `a/B`.
  private static String element(String name) {
    var element = name.replaceFirst("^\\[+", "");
    return element.length() < name.length() && element.startsWith("L")
        ? element.substring(1, element.length() - 1)
        : element;
  }
}
