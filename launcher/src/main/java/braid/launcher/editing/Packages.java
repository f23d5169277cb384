package braid.launcher.editing;

import java.lang.module.ModuleFinder;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/// The packages there are for an import: the JDK's and Braid's. The compiler knows them only after
/// it has read the whole class path, which takes it many seconds, and shows Braid's inside too.
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
    return all;
  }

  /// The next parts of packages whose names go on from there: `java.ut` goes on as `util`.
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
