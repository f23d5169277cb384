package braid.launcher.editing;

import java.lang.module.ModuleFinder;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/// Packages that completion offers in imports: those of the JDK and the public ones of Braid. The
/// compiler is not asked for them: it would read the whole class path, which takes many seconds,
/// and would also list Braid's internal packages.
final class Packages {
  private static final Set<String> ALL = all();

  private Packages() {}

  private static Set<String> all() {
    var all = new TreeSet<String>();
    for (var module : ModuleFinder.ofSystem().findAll()) {
      if (module.descriptor().name().startsWith("java.")) {
        module.descriptor().exports().stream()
            .filter(exported -> !exported.isQualified())
            .forEach(exported -> all.add(exported.source()));
      }
    }
    all.add("braid");
    all.add("braid.schedule");
    all.add("braid.schedule.simulation");
    all.add("braid.export");
    all.add("braid.shapes");
    return all;
  }

  /// Returns the next components of packages with this prefix: `java.ut` continues as `util`.
  static List<String> next(String qualified) {
    int dot = qualified.lastIndexOf('.') + 1;
    var next = new LinkedHashSet<String>();
    for (var name : ALL) {
      if (name.startsWith(qualified)) {
        int end = name.indexOf('.', dot);
        next.add(name.substring(dot, end < 0 ? name.length() : end) + ".");
      }
    }
    return List.copyOf(next);
  }
}
