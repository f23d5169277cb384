package braid.launcher.bundle;

import braid.model.BraidException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.spi.ToolProvider;

/// The Java runtime of a bundle: the running JDK, linked with the modules that Braid and notebooks
/// need. Uncompressed, because the whole bundle is compressed better.
final class RuntimeImage {
  /// Modules that `jdeps` finds in the jars, and modules useful for notebooks: HTTP, and `jcmd` to
  /// see where a rank hangs.
  private static final List<String> MODULES =
      List.of(
          "java.desktop",
          "java.naming",
          "java.net.http",
          "java.sql",
          "jdk.compiler",
          "jdk.jcmd",
          "jdk.jshell",
          "jdk.management",
          "jdk.unsupported");

  /// Excluded files: signatures of older Java for `--release`, screens and sound.
  private static final List<String> LEFT_OUT =
      List.of("**/ct.sym", "**/libsplashscreen.so", "**/libawt_xawt.so", "**/libjsound.so");

  private RuntimeImage() {}

  static void link(Path into) {
    var jlink =
        ToolProvider.findFirst("jlink")
            .orElseThrow(
                () ->
                    new BraidException(
                        "bundle needs a JDK with jlink but %s has none; set BRAID_JAVA_HOME to a JDK 25"
                            .formatted(System.getProperty("java.home"))));
    var output = new StringWriter();
    int exit =
        jlink.run(
            new PrintWriter(output, true),
            new PrintWriter(output, true),
            "--add-modules",
            String.join(",", MODULES),
            "--strip-java-debug-attributes",
            "--no-man-pages",
            "--no-header-files",
            "--compress",
            "zip-0",
            "--exclude-files",
            String.join(",", LEFT_OUT),
            "--output",
            into.toString());
    if (exit != 0) {
      throw new BraidException(
          "jlink of %s created no runtime image: %s; set BRAID_JAVA_HOME to a JDK 25 that can, for example Temurin"
              .formatted(
                  System.getProperty("java.home"),
                  output.toString().strip().replaceAll("\\s*\\R\\s*", " ")));
    }
  }
}
