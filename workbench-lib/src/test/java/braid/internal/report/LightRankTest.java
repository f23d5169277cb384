package braid.internal.report;

import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.SyntheticProfiles;
import braid.evidence.SyntheticReduction;
import braid.evidence.SyntheticStudy;
import braid.internal.evidence.RankValues;
import braid.model.Overlap;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/// A rank that only sends values to the front stays small: its JVM loads no class of Tablesaw,
/// JFreeChart or AWT.
class LightRankTest {
  private static final Pattern HEAVY =
      Pattern.compile(".*\\] (tech\\.tablesaw|org\\.jfree|java\\.awt|javax\\.imageio)\\..*");

  /// Code of a rank that shows values.
  static final class Rank {
    private Rank() {}

    record Way(String name, int splits) {}

    public static void main(String[] args) {
      RankValues.bundle(42);
      System.out.println("records: " + RankValues.bundle(List.of(new Way("a", 1))).text());
      RankValues.bundle(new SyntheticProfiles(1, 2, 4, 2, 10, 20).profile(0));
      RankValues.bundle(new SyntheticReduction(1, 2, 4, 2, 10, 20).profile(0));
      var overlaps = List.of(Overlap.pipelined(4), Overlap.pipelined(4).replay());
      var study = new SyntheticStudy(1e6, 0.01, 6, 1).of(overlaps, _ -> 9e5);
      System.out.println("headline: " + RankValues.bundle(study).text());
      System.out.println("best: " + study.best());
    }
  }

  @Test
  void handingOverLoadsNothingThatDraws() throws IOException, InterruptedException {
    var java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    var process =
        new ProcessBuilder(
                java,
                "-Xlog:class+load:stdout",
                "-cp",
                System.getProperty("java.class.path", "."),
                Rank.class.getName())
            .redirectErrorStream(true)
            .redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")))
            .start();
    List<String> lines;
    try (var reader = process.inputReader()) {
      lines = reader.lines().toList();
    }
    assertThat(process.waitFor()).as(() -> String.join("\n", lines)).isZero();
    assertThat(lines).contains("records: name  splits");
    assertThat(lines)
        .anyMatch(line -> line.startsWith("headline: ") && line.contains("pipelined, 4 splits"));
    assertThat(lines).anyMatch(line -> line.contains("braid.evidence.Study"));
    assertThat(lines).noneMatch(line -> HEAVY.matcher(line).matches());
  }
}
