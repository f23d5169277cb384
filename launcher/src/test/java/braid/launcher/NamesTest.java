package braid.launcher;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.source.tree.VariableTree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreeScanner;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Variables, fields, parameters and record components are named after things: a preposition or a
/// pronoun says nothing about its value. Methods may have such names: `of`, `with`.
class NamesTest {
  private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();

  private static final Set<String> NOT_NAMES =
      Set.of(
          "of", "on", "in", "by", "at", "with", "as", "into", "how", "which", "what", "where",
          "why", "who", "there", "its", "it", "than");

  private static final Pattern SOURCE =
      Pattern.compile("(native|workbench-lib|launcher|notebooks)/src/\\w+/java/.*\\.java");

  /// Packages that still have such names.
  private static final Pattern NOT_YET =
      Pattern.compile("launcher/src/main/.*|.*/braid/schedule/.*");

  @TempDir Path directory;

  @Test
  void aVariableIsNamedAfterItsValue() throws IOException {
    try (var files = Files.walk(ROOT)) {
      var sources = files.filter(NamesTest::isChecked).toList();
      assertThat(sources).hasSizeGreaterThan(500);
      assertThat(found(sources)).isEmpty();
    }
  }

  @Test
  void aPrepositionIsFoundInEveryKindOfVariable() throws IOException {
    var file =
        Files.writeString(
            directory.resolve("Planted.java"),
            """
            record Planted(int of, int size) {
              private static final int how = 1;

              static Planted of(int at) {
                for (int which = 0; which < at; which++) {}
                Runnable run = () -> {};
                java.util.function.IntUnaryOperator twice = by -> 2 * by;
                return new Planted(at, twice.applyAsInt(at));
              }
            }
            """);
    assertThat(found(List.of(file)))
        .containsExactly(
            "Planted.java: of",
            "Planted.java: how",
            "Planted.java: at",
            "Planted.java: which",
            "Planted.java: by");
  }

  private static boolean isChecked(Path file) {
    var name = ROOT.relativize(file).toString();
    return SOURCE.matcher(name).matches() && !NOT_YET.matcher(name).matches();
  }

  private static List<String> found(List<Path> sources) throws IOException {
    var found = new ArrayList<String>();
    var compiler = ToolProvider.getSystemJavaCompiler();
    try (var files = compiler.getStandardFileManager(null, null, StandardCharsets.UTF_8)) {
      var task =
          (JavacTask)
              compiler.getTask(
                  null,
                  files,
                  null,
                  List.of("-proc:none"),
                  null,
                  files.getJavaFileObjectsFromPaths(sources));
      for (var unit : task.parse()) {
        var file = Path.of(unit.getSourceFile().toUri()).getFileName();
        new TreeScanner<Void, Void>() {
          @Override
          public Void visitVariable(VariableTree variable, Void none) {
            var name = variable.getName().toString();
            if (NOT_NAMES.contains(name)) {
              found.add(file + ": " + name);
            }
            return super.visitVariable(variable, null);
          }
        }.scan(unit, null);
      }
    }
    return found;
  }
}
