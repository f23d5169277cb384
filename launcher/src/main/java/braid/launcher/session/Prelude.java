package braid.launcher.session;

import braid.launcher.compile.CellCompiler;
import braid.model.BraidException;
import java.util.List;
import jdk.jshell.Snippet;

/// Initial declarations of every notebook: Java's usual imports, Braid's names, and `world`.
final class Prelude {
  private static final List<String> IMPORTS =
      List.of(
          "import java.io.*;",
          "import java.math.*;",
          "import java.nio.file.*;",
          "import java.time.*;",
          "import java.util.*;",
          "import java.util.concurrent.*;",
          "import java.util.function.*;",
          "import java.util.stream.*;",
          "import braid.*;",
          "import braid.evidence.*;",
          "import braid.export.*;",
          "import braid.model.*;",
          "import braid.schedule.*;",
          "import braid.schedule.simulation.Machine;",
          "import braid.shapes.*;",
          "import static braid.model.DType.*;",
          "import static braid.Display.*;",
          "import static braid.model.MemoryKind.*;",
          "import static braid.model.Method.*;",
          "import static braid.model.Transport.*;");

  /// Imported only if the jar of the library's checks is installed.
  private static final String SELF_TEST = "braid.selftest.SelfTest";

  /// Declared on the ranks only: the front is not a rank.
  static final String WORLD = "var world = ProcessGroup.world();";

  /// Declared in the front only: the ranks' measurements.
  static final String PROFILES =
      "var profiles = braid.launcher.session.GatheredEvidence.named(\"%s\");";

  private Prelude() {}

  static void imports(CellCompiler compiler) {
    IMPORTS.forEach(snippet -> eval(compiler, snippet));
    if (ClassLoader.getSystemResource(SELF_TEST.replace('.', '/') + ".class") != null) {
      eval(compiler, "import %s;".formatted(SELF_TEST));
    }
  }

  static void eval(CellCompiler compiler, String snippet) {
    for (var event : compiler.eval(snippet)) {
      if (event.status() != Snippet.Status.VALID || event.exception() != null) {
        throw new BraidException(
            "the session could not start: "
                + snippet
                + " failed"
                + (event.exception() == null ? "" : ": " + event.exception().getMessage()));
      }
    }
  }
}
