package braid.internal.pipeline;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The documentation of each pattern quotes the code that it is verified against.
class QuotedReferenceTest {
  private static final Path SOURCES = Path.of("src/main/java/braid");

  @ParameterizedTest
  @ValueSource(
      strings = {
        "allGatherGemm",
        "gemmReduceScatter",
        "gemmAllReduce",
        "besideAllGather",
        "besideReduceScatter"
      })
  void everyPatternQuotesItsReference(String name) throws IOException {
    var reference = Files.readString(SOURCES.resolve("internal/pipeline/GemmReference.java"));
    var documented = Files.readString(SOURCES.resolve("model/GemmSpec.java"));
    var body = found("private Bounded %s\\(\\) \\{\n(.*?)\n  \\}".formatted(name), reference);
    var quoted =
        found(
            "/// ```java\n((?:  ///[^\n]*\n)*?)  /// ```\n  public static GemmSpec %s\\("
                .formatted(name),
            documented);
    assertThat(lines(quoted)).isNotEmpty().isEqualTo(lines(body));
  }

  private static String found(String pattern, String text) {
    var matcher = Pattern.compile(pattern, Pattern.DOTALL).matcher(text);
    assertThat(matcher.find()).as(pattern).isTrue();
    return matcher.group(1);
  }

  private static List<String> lines(String code) {
    return code.lines()
        .map(line -> line.replace("///", "").strip())
        .filter(line -> !line.isEmpty())
        .collect(Collectors.toList());
  }
}
