package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.Overlap;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunsTest {
  private static final ProfileSet PROFILES = new SyntheticProfiles(2, 3, 4, 2, 1000, 3000).set();

  @TempDir Path home;

  private static Study<Overlap> study() {
    return new SyntheticStudy(100e6, 0.01, 8, 1)
        .of(
            SyntheticStudy.overlaps(new int[] {1, 2, 4}, 1, 2),
            tuning -> 80e6 + 1e6 * tuning.splits());
  }

  private Runs at(String instant) {
    return Runs.in(home.resolve("runs"), Clock.fixed(Instant.parse(instant), ZoneOffset.UTC));
  }

  @Test
  void evidenceComesBackWithTheSameTablesAndCharts() throws IOException {
    var study = study();
    var first = at("2026-01-31T23:59:58.999Z").save(PROFILES);
    var second = at("2026-01-31T23:59:59.000Z").save(study);
    var runs = Runs.in(home.resolve("runs"));

    assertThat(runs.list()).containsExactly(first, second);
    assertThat(first.id()).startsWith("20260131T235958999Z-");
    assertThat(runs.load(first.id())).isEqualTo(PROFILES);
    assertThat(runs.load(second.id())).isEqualTo(study);
    assertThat(names(first.directory()))
        .containsExactly(
            "breakdown.svg",
            "headline.txt",
            "profiles.json",
            "spans.csv",
            "stages.csv",
            "timeline.svg",
            "trace.json");
    assertThat(first.directory().resolve("trace.json")).hasContent(PROFILES.chromeTrace());
    assertThat(names(second.directory()))
        .containsExactly("headline.txt", "heatmap.svg", "splits.svg", "study.csv", "study.json");
    assertThat(Files.readAllLines(second.directory().resolve("study.csv")))
        .hasSize(1 + 1 + study.trials().size());
    assertThat(runs.display().text()).contains(first.id()).contains(study.headline());
  }

  /// Measurements of `braid run` are saved in the folder of the run.
  @Test
  void runsInTheFolderOfARunAreListedAndLoaded() throws IOException {
    var runs = Runs.in(home.resolve("runs"));
    var beside = at("2026-01-31T23:59:58.999Z").save(PROFILES);
    var folder = home.resolve("runs/20260131T235957000Z-abcdef");
    var clock = Clock.fixed(Instant.parse("2026-01-31T23:59:57.500Z"), ZoneOffset.UTC);
    var inside = Runs.in(folder, clock).save(study());

    assertThat(inside.directory()).hasParent(folder);
    assertThat(runs.list()).containsExactly(inside, beside);
    assertThat(runs.load(inside.id())).isEqualTo(study());
    assertThat(runs.display().text()).contains(inside.id());
  }

  @Test
  void countersAreKeptAsATableToo() throws IOException {
    var counted = new SyntheticReduction(2, 2, 3, 1, 1000, 3000).set();
    var runs = at("2026-01-31T23:59:58.999Z");
    var saved = runs.save(counted);

    assertThat(runs.load(saved.id())).isEqualTo(counted);
    assertThat(Files.readAllLines(saved.directory().resolve("counters.csv")))
        .containsExactly(
            "rank,rendezvous,buffers allocated,buffers reused,plans made,plans reused,replays",
            "0,6,4,11,1,0,2",
            "1,6,4,11,1,1,2");
  }

  @Test
  void aStudyWithoutLinesIsKeptAsAChartOfConfigurations() throws IOException {
    var study =
        new SyntheticStudy(100e6, 0.01, 8, 1)
            .of(List.of(Overlap.pipelined(4), Overlap.pipelined(4).replay()), _ -> 9e7);

    assertThat(names(at("2026-01-31T23:59:58.999Z").save(study).directory()))
        .containsExactly("configurations.svg", "headline.txt", "study.csv", "study.json");
  }

  @Test
  void aFailedSaveLeavesNothingBehind() throws IOException {
    Files.writeString(home.resolve("runs"), "a file where the directory should be");
    assertThatThrownBy(() -> at("2026-01-31T00:00:00Z").save(PROFILES))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("could not be saved in")
        .hasMessageMatching("[^\\n]*");
    assertThat(names(home)).containsExactly("runs");
  }

  @Test
  void aFolderWithoutManifestIsNeitherListedNorLoaded() throws IOException {
    var runs = at("2026-01-31T00:00:00Z");
    assertThat(runs.list()).isEmpty();
    assertThatThrownBy(() -> runs.load("20260131T000000000Z-ffffff"))
        .hasMessageContaining("there is no run 20260131T000000000Z-ffffff")
        .hasMessageEndingWith("; it has none");
    var saved = runs.save(study());
    Files.createDirectories(home.resolve("runs/.unfinished-20260131T000000000Z-abcdef"));
    Files.createDirectories(home.resolve("runs/20260131T000000000Z-abcdef"));
    Files.createDirectories(home.resolve("runs/notes"));

    assertThat(runs.list()).containsExactly(saved);
    assertThatThrownBy(() -> runs.load("../runs/" + saved.id()))
        .hasMessageContaining("a run's id must look like")
        .hasMessageEndingWith("the latest is " + saved.id());
  }

  @Test
  void aCorruptRunIsAOneLineErrorThatNamesTheFile() throws IOException {
    var runs = at("2026-01-31T00:00:00Z");
    var saved = runs.save(study());
    var file = saved.directory().resolve("study.json");
    for (var content : List.of("", "{", "{\"format\":\"other/1\"}", "null", "\u0000")) {
      Files.writeString(file, content);
      assertThatThrownBy(() -> runs.load(saved.id()))
          .isInstanceOf(BraidException.class)
          .hasMessageStartingWith(file + ": study")
          .hasMessageMatching("[^\\n]*");
    }
  }

  private static List<String> names(Path directory) throws IOException {
    try (var paths = Files.list(directory)) {
      return paths.map(p -> p.getFileName().toString()).sorted().toList();
    }
  }
}
