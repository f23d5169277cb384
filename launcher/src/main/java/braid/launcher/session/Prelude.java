package braid.launcher.session;

import braid.BraidException;
import java.util.List;
import jdk.jshell.Snippet;

/// What every notebook finds there already: Java's usual imports, Braid's names, and `world`.
final class Prelude {
  private static final List<String> SNIPPETS =
      List.of(
          "import java.io.*;",
          "import java.math.*;",
          "import java.nio.file.*;",
          "import java.time.*;",
          "import java.util.*;",
          "import java.util.concurrent.*;",
          "import java.util.function.*;",
          "import java.util.stream.*;",
          "import braid.*;");

  private Prelude() {}

  static void eval(CellCompiler compiler) {
    for (var snippet : SNIPPETS) {
      for (var event : compiler.eval(snippet)) {
        if (event.status() != Snippet.Status.VALID || event.exception() != null) {
          throw new BraidException(
              "the session could not begin: "
                  + snippet
                  + " failed"
                  + (event.exception() == null ? "" : ": " + event.exception().getMessage()));
        }
      }
    }
  }
}
