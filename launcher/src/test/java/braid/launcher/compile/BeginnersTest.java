package braid.launcher.compile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import braid.launcher.cell.Cell;
import braid.launcher.compile.CellCompiler.Piece;
import braid.launcher.fuzz.Mutations;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import jdk.jshell.execution.LocalExecutionControl;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Mistakes of people who know Python, torch, MPI or another language, by the compiler of a
/// session. Nothing is run.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class BeginnersTest {
  private static final int MUTATIONS_PER_CELL = 2;
  private static final Path NOTEBOOKS = Path.of("../notebooks");
  private static final Pattern TOKEN = Pattern.compile("[\\w$]+|\"[^\"]*\"|\\S");
  private static final List<String> PRELUDE =
      List.of(
          "import java.io.*;",
          "import java.nio.file.*;",
          "import java.time.*;",
          "import java.util.*;",
          "import java.util.function.*;",
          "import java.util.stream.*;",
          "import braid.*;",
          "import braid.evidence.*;",
          "import braid.model.*;",
          "import braid.schedule.*;",
          "import braid.schedule.simulation.Machine;",
          "import static braid.model.DType.*;",
          "import static braid.Display.*;",
          "import static braid.model.MemoryKind.*;",
          "import static braid.model.Method.*;",
          "import static braid.model.Transport.*;",
          "ProcessGroup world = null;");
  private static final List<String> VARIABLES =
      List.of(
          "var spec = GemmSpec.allGatherGemm(64, 64, 64);",
          "int m = 4;",
          "long total = 7;",
          "String name = \"a\";",
          "List<Integer> xs = null;",
          "int[] sizes = {1, 2, 3};",
          "double[] times = {1, 2};",
          "SymmetricTensor x = null;");

  private static final class Nowhere extends LocalExecutionControl {
    @Override
    protected String invoke(Method method) {
      return "";
    }
  }

  private final CellCompiler compiler = new CellCompiler(new Nowhere());

  @BeforeAll
  void declare() {
    PRELUDE.forEach(compiler::eval);
    VARIABLES.forEach(compiler::eval);
  }

  @AfterAll
  void close() {
    compiler.close();
  }

  /// Returns the lines of the error that compiling a cell ends with; empty if it has none.
  private static List<String> error(CellCompiler compiler, String source) {
    var cell = new Cell("cell 1", source);
    try {
      for (var piece : compiler.split(cell)) {
        if (piece instanceof Piece.Java code) {
          for (var event : compiler.eval(code.source())) {
            var error =
                event.causeSnippet() == null
                    ? compiler.errors(
                        cell, code, event, OtherCells.front(Set.of("profiles")::contains))
                    : Optional.<CompileError>empty();
            if (error.isPresent()) {
              return error.get().failure().traceback();
            }
          }
        }
      }
      return List.of();
    } catch (CompileError e) {
      return e.failure().traceback();
    }
  }

  static Stream<Arguments> beginners() throws IOException {
    try (var lines = BeginnersTest.class.getResourceAsStream("beginners.txt")) {
      var text = new String(Objects.requireNonNull(lines).readAllBytes(), StandardCharsets.UTF_8);
      return text
          .lines()
          .filter(line -> line.contains(" => "))
          .map(line -> line.split(" => ", 2))
          .map(parts -> Arguments.of(parts[0].replace("\\n", "\n"), parts[1]))
          .toList()
          .stream();
    }
  }

  @ParameterizedTest
  @MethodSource("beginners")
  void aMistakeHasAHintThatNamesItsRemedy(String source, String words) {
    var lines = error(compiler, source);
    assertThat(lines.stream().filter(line -> line.startsWith("  ") && !line.startsWith("    ")))
        .as(String.join("\n", lines))
        .isNotEmpty()
        .last()
        .asString()
        .contains(words.split("\\|(?! |\\|)", -1));
  }

  @Test
  void fiftyMistakesAreListed() throws IOException {
    assertThat(beginners()).hasSizeGreaterThanOrEqualTo(50);
  }

  /// Replaces a token in every cell of the notebooks, so that errors arise that nobody has thought
  /// of: a hint must be a sentence, and code that it suggests must be other code.
  @Test
  void hintsForBrokenNotebooksAreSound() throws IOException {
    var random = new Random(Mutations.SEED);
    try (var notebooks = Files.list(NOTEBOOKS)) {
      for (var notebook :
          notebooks.filter(path -> path.toString().endsWith(".ipynb")).sorted().toList()) {
        var inNotebook = new CellCompiler(new Nowhere());
        PRELUDE.forEach(inNotebook::eval);
        for (var cell : cells(notebook)) {
          for (int i = 0; i < MUTATIONS_PER_CELL; i++) {
            var broken = mutated(cell, random);
            try {
              checkHints(error(inNotebook, broken));
            } catch (RuntimeException | AssertionError e) {
              fail("-Dbraid.seed=" + Mutations.SEED + ", " + notebook + ":\n" + broken, e);
            }
          }
          error(inNotebook, cell);
        }
        inNotebook.close();
      }
    }
  }

  private static void checkHints(List<String> error) {
    var code = error.size() > 1 ? error.get(1).strip() : "";
    error.stream()
        .filter(line -> line.startsWith("  ") && !line.startsWith("   "))
        .forEach(
            hint -> {
              assertThat(hint).doesNotContain("``", "$1", "$2", "null)", "<args>");
              assertThat(hint).doesNotContain("write `" + code + "`", ": `" + code + "`");
            });
  }

  private static List<String> cells(Path notebook) throws IOException {
    var sources = new ArrayList<String>();
    for (var cell :
        JsonParser.parseString(Files.readString(notebook))
            .getAsJsonObject()
            .getAsJsonArray("cells")) {
      var source = new StringBuilder();
      cell.getAsJsonObject()
          .getAsJsonArray("source")
          .forEach(line -> source.append(line.getAsString()));
      if (cell.getAsJsonObject().get("cell_type").getAsString().equals("code")
          && !source.toString().startsWith("%")) {
        sources.add(source.toString());
      }
    }
    return sources;
  }

  private static String mutated(String cell, Random random) {
    List<MatchResult> tokens = TOKEN.matcher(cell).results().toList();
    var token = tokens.get(random.nextInt(tokens.size()));
    var word = token.group();
    var others =
        Arrays.asList(
            "",
            word + word,
            tokens.get(random.nextInt(tokens.size())).group(),
            word.substring(1),
            word + ";",
            "(",
            word.equals(word.toLowerCase(Locale.ROOT))
                ? word.toUpperCase(Locale.ROOT)
                : word.toLowerCase(Locale.ROOT));
    return cell.substring(0, token.start())
        + others.get(random.nextInt(others.size()))
        + cell.substring(token.end());
  }
}
