package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.evidence.Comparison.Verdict;
import braid.internal.report.chart.ChartImage;
import braid.model.BraidException;
import braid.model.MimeBundle;
import braid.model.Overlap;
import braid.model.Profile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.title.TextTitle;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Evidence of ranks that share a GPU carries the note in every form, and no verdict in any.
class SharedGpuTest {
  private static final String NOTE = "ranks share a GPU: order and correctness only";
  private static final String VERDICTS =
      "(?is).*\\b(fast|faster|fastest|slow|slower|best|ties|tied|beats?|saves?|less time)\\b.*";

  private static final Study<Overlap> REAL =
      new SyntheticStudy(103e6, 0.005, 12, 7)
          .of(
              SyntheticStudy.overlaps(new int[] {1, 2, 4, 8}, 1, 2),
              SyntheticStudy.model(75e6, 28e6, 0.6e6));
  private static final Study<Overlap> STUDY = SyntheticStudy.shared(REAL);
  private static final ProfileSet PROFILES =
      SyntheticProfiles.shared(new SyntheticProfiles(4, 3, 4, 2, 1_000_000, 3_000_000).set());

  private static void assertNoted(String text) {
    assertThat(text).contains(NOTE).doesNotMatch(VERDICTS);
  }

  private static void assertNoted(JFreeChart chart) {
    var subtitles =
        chart.getSubtitles().stream()
            .filter(TextTitle.class::isInstance)
            .map(each -> ((TextTitle) each).getText())
            .toList();
    assertThat(subtitles).isNotEmpty();
    assertThat(subtitles.getFirst()).startsWith(NOTE);
    assertThat(chart.getTitle().getText() + subtitles).doesNotMatch(VERDICTS);
    assertThat(ChartImage.svg(chart)).doesNotMatch(VERDICTS);
  }

  @Test
  void aStudyGivesNoVerdict() {
    assertThat(REAL.best()).isNotEqualTo(Overlap.unfused());
    assertThat(STUDY.timesCount()).isFalse();
    for (var refused :
        List.<Supplier<Object>>of(STUDY::best, STUDY::simplest, STUDY::bestMedianNanos)) {
      assertThatThrownBy(refused::get)
          .isInstanceOf(BraidException.class)
          .hasMessage(
              "a study's best needs times that count but ranks share a GPU: order and correctness only; build with study.reference() or study.fastest(), or tune with a GPU per rank");
    }
    assertThat(STUDY.reference()).isEqualTo(Overlap.unfused());
    assertThat(STUDY.ties()).isEmpty();
    assertThat(STUDY.advice()).isEmpty();
    assertThat(STUDY.headline())
        .isEqualTo(
            NOTE
                + "; predicted on h200x8, not calibrated: 301 µs (1 split, 1 stream) to 400 µs (unfused)");
    assertNoted(STUDY.display().text());
    assertNoted(
        STUDY.display().data().getOrDefault(MimeBundle.HTML, "").replaceAll("base64,[^\"]*", ""));
    assertNoted(STUDY.toJson());
    assertNoted(Study.compared(List.of(STUDY)).printAll());
    assertThat(STUDY.charts()).containsOnlyKeys("configurations", "heatmap");
    STUDY.charts().values().forEach(SharedGpuTest::assertNoted);
  }

  @Test
  void aStudyShowsThePredictionBesideEachTime() {
    var table = STUDY.table();
    assertThat(table.doubleColumn("predicted ms").get(0)).isEqualTo(0.4);
    assertThat(table.doubleColumn("predicted ms").get(1)).isEqualTo(0.301);
    assertThat(table.doubleColumn("predicted ms").isMissing(8)).isTrue();
    assertThat(table.doubleColumn("vs unfused %").countMissing()).isEqualTo(9);
    assertThat(REAL.table().columnNames()).doesNotContain("predicted ms");
    assertThat(Study.fromJson(STUDY.toJson())).isEqualTo(STUDY);
  }

  @Test
  void jsonWithoutTheNoteHasTimesThatCount() {
    assertThat(REAL.toJson()).doesNotContain("predicted", NOTE);
    assertThat(Study.fromJson(REAL.toJson()).timesCount()).isTrue();
  }

  @Test
  void aProfileGivesNoVerdict() {
    assertThat(PROFILES.timesCount()).isFalse();
    assertNoted(PROFILES.headline());
    assertNoted(PROFILES.display().text());
    assertNoted(PROFILES.chromeTrace());
    assertNoted(PROFILES.stages().printAll());
    assertThat(PROFILES.stages().doubleColumn("saved ÷ savable").countMissing()).isEqualTo(4);
    assertNoted(ProfileSet.compared(List.of(PROFILES, PROFILES)).printAll());
    var overview = Evidence.overview(List.of(PROFILES, STUDY, other()));
    assertNoted(overview.text());
    assertThat(overview.text()).startsWith("2 configurations; " + NOTE);
    PROFILES.charts().values().forEach(SharedGpuTest::assertNoted);
    assertNoted(Charts.bars(ProfileSet.compared(List.of(PROFILES)), "pattern", "median ms"));
    var empty = Charts.bars(Study.compared(List.of(STUDY)), "method", "vs unfused %");
    assertNoted(empty);
    assertThat(empty.getCategoryPlot().getDataset().getColumnCount()).isZero();
    assertThat(ChartImage.svg(empty)).contains("no bar has a value of vs unfused %");
  }

  @Test
  void crossoversGiveNoVerdict() {
    var found = new Crossovers(new TreeMap<>(Map.of(64, STUDY, 512, STUDY)));
    assertThat(found.headline()).isEqualTo("m = 64 to 512: not judged; " + NOTE);
    assertNoted(found.display().text());
    var table = found.table();
    for (var name : List.of("take", "time vs unfused")) {
      assertThat(table.stringColumn(name).asList()).containsExactly("–", "–");
    }
    assertThat(table.doubleColumn("median ms").countMissing()).isEqualTo(2);
    assertNoted(found.chart());
  }

  private static ProfileSet other() {
    return SyntheticProfiles.shared(new SyntheticProfiles(4, 3, 8, 2, 500_000, 1_500_000).set());
  }

  @Test
  void everySavedFileHasTheNote(@TempDir Path home) throws IOException {
    for (var evidence : List.of(STUDY, PROFILES)) {
      var saved = Runs.in(home).save(evidence);
      assertThat(Runs.in(home).load(saved.id())).isEqualTo(evidence);
      try (var files = Files.list(saved.directory())) {
        for (var file : files.toList()) {
          assertThat(file).content().as(file.toString()).doesNotMatch(VERDICTS);
          // Texts of a picture are broken into lines.
          if (!file.toString().endsWith(".svg")) {
            assertThat(file).content().as(file.toString()).contains(NOTE);
          }
        }
      }
    }
  }

  @Test
  void timesOfSharedGpusAreNotCompared() {
    for (var comparison :
        List.of(
            Comparison.of(STUDY, STUDY), Comparison.of(REAL, STUDY), Comparison.of(STUDY, REAL))) {
      assertThat(comparison.timesCount()).isFalse();
      assertThat(comparison.verdict()).isEqualTo(Verdict.NOT_COMPARED);
      assertThat(comparison.rows())
          .isNotEmpty()
          .allMatch(row -> row.verdict() == Verdict.NOT_COMPARED && row.moreRounds().isEmpty());
      assertNoted(comparison.toString());
      assertNoted(comparison.display().data().getOrDefault(MimeBundle.HTML, ""));
    }
    assertThat(Comparison.of(REAL, STUDY).differing()).contains("times: none and " + NOTE);
    assertThat(Comparison.of(REAL, REAL).verdict()).isEqualTo(Verdict.SAME);
  }

  @Test
  void aChainKeepsItsTunings() {
    var chain =
        new ChainStudy(
            List.of(Overlap.ring(2)), List.of(new ChainStudy.Tuned(1, "a problem", STUDY)));
    assertNoted(chain.display().text());
    assertThat(chain.table().stringColumn("tuning").get(0)).isEqualTo(NOTE);
  }

  @Test
  void oneRankHasARemedyInEveryHeadline() {
    var times = List.of(9L, 9L, 9L, 9L, 9L, 9L);
    var backends = Map.of("cuda", "-n 4 --share-gpus, -n 4 --backend host", "host", "-n 4");
    backends.forEach(
        (backend, remedy) -> {
          var line =
              "one rank has nothing to communicate; try %s, or predict on a described machine"
                  .formatted(remedy);
          var problem = new LinkedHashMap<>(Map.of("backend", backend));
          var study =
              new Study<>(
                  problem,
                  1,
                  7,
                  times,
                  times,
                  List.of(new Study.Trial<>(Overlap.ring(2), times)),
                  Overlap.unfused());
          assertThat(study.headline()).endsWith("; " + line);
          assertThat(study.display().text()).containsOnlyOnce(line);
          var alone = new SyntheticProfiles(1, 2, 2, 1, 10, 20).set().profiles().getFirst();
          var profile =
              new Profile(alone.place(), problem, alone.iterationNanos(), alone.spans(), 0);
          var set = ProfileSet.of(List.of(profile));
          assertThat(set.headline()).endsWith("; " + line);
          assertThat(Evidence.overview(List.of(set)).text()).containsOnlyOnce(line);
        });
    assertThat(REAL.headline()).doesNotContain("one rank");
  }
}
