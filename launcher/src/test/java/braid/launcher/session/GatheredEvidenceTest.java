package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.ProfileSet;
import braid.evidence.Runs;
import braid.model.Place;
import braid.model.Profile;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Measurements of a long session: the latest in memory, the others on disk.
class GatheredEvidenceTest {
  private static final int MANY = 3 * GatheredEvidence.MOST_IN_MEMORY;

  @TempDir Path home;
  private final List<String> complaints = new ArrayList<>();

  private static Profile profile(int number) {
    return new Profile(
        new Place(0, 1),
        new LinkedHashMap<>(Map.of("pattern", "p" + number)),
        List.of(1_000L + number),
        List.of(),
        0,
        new LinkedHashMap<>(),
        List.of(),
        List.of(),
        List.of(),
        Optional.empty(),
        Optional.empty());
  }

  private static void measure(GatheredEvidence gathered, int from, int to) throws Exception {
    for (int i = from; i < to; i++) {
      gathered.published(profile(i).display());
    }
    gathered.awaitSaved();
  }

  private static List<Long> nanos(List<ProfileSet> sets) {
    return sets.stream().map(set -> set.profiles().getFirst().iterationNanos().getFirst()).toList();
  }

  @Test
  void oldMeasurementsLeaveTheMemoryAndAreReadAgain() throws Exception {
    try (var gathered = new GatheredEvidence(home, complaints::add)) {
      measure(gathered, 0, 1);
      var first = new WeakReference<>(gathered.all().getFirst());
      measure(gathered, 1, MANY);
      while (first.get() != null) {
        System.gc();
      }
      assertThat(gathered.all()).hasSize(MANY);
      assertThat(nanos(gathered.sets())).startsWith(1_000L, 1_001L).hasSize(MANY);
      assertThat(gathered.of("p2").profiles().getFirst().iterationNanos()).containsExactly(1_002L);
      assertThat(gathered.latest().profiles().getFirst().iterationNanos())
          .containsExactly(999L + MANY);
      assertThat(gathered.toString().lines()).hasSize(MANY);
      assertThat(complaints).isEmpty();
    }
  }

  @Test
  void aClosedSessionHasSavedEverything() {
    try (var gathered = new GatheredEvidence(home, complaints::add)) {
      for (int i = 0; i < MANY; i++) {
        gathered.published(profile(i).display());
      }
    }
    assertThat(Runs.in(home.resolve("runs")).list()).hasSize(MANY);
    assertThat(complaints).isEmpty();
  }

  @Test
  void aSessionThatCannotSaveReportsDroppedEvidence() throws Exception {
    Files.writeString(home.resolve("runs"), "a file where the directory should be");
    try (var gathered = new GatheredEvidence(home, complaints::add)) {
      measure(gathered, 0, MANY);
      assertThat(gathered.all()).hasSize(GatheredEvidence.MOST_IN_MEMORY);
      assertThat(gathered.toString())
          .startsWith(
              "%d older, which could not be saved, were dropped"
                  .formatted(MANY - GatheredEvidence.MOST_IN_MEMORY));
    }
    assertThat(complaints)
        .filteredOn(line -> line.startsWith("note: this session keeps"))
        .hasSize(1);
  }
}
