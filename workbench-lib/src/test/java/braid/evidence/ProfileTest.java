package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.report.json.ProfileJson;
import braid.model.BraidException;
import braid.model.Place;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ProfileTest {
  private static final Profile PROFILE = new SyntheticProfiles(2, 2, 2, 2, 1000, 3000).profile(1);

  @Test
  void comesBackFromItsJsonAsItWas() {
    assertThat(ProfileJson.read(PROFILE.toJson())).isEqualTo(PROFILE);
    assertThat(PROFILE.display().data().get("application/vnd.braid.profile+json"))
        .isEqualTo(PROFILE.toJson());
  }

  @Test
  void extremesAndOddNamesComeBackToo() {
    var configuration = new LinkedHashMap<String, String>();
    configuration.put("a \"b\"\n", "→ü");
    configuration.put("", "");
    var span = new Span(0, -1, Stage.REDUCE, "", Long.MIN_VALUE, Long.MAX_VALUE, Long.MAX_VALUE, 0);
    var odd =
        new Profile(new Place(0, 1), configuration, List.of(Long.MAX_VALUE), List.of(span), 0);

    assertThat(ProfileJson.read(odd.toJson())).isEqualTo(odd);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "\"size\":2          | \"size\":2.5         | `size` must be a whole number but was 2.5",
        "\"size\":2          | \"size\":\"2\"       | `size` must be a whole number but was \"2\"",
        "\"rank\":1,         | \"\":1,              | unknown field",
        "\"rank\":1,         | ''                   | not JSON",
        "\"streams\":[       | \"streams\":[7,      | `streams` must be an array of strings but was 7",
        "\"GEMM\"            | \"GEM\"              | must be one of GEMM, COPY, REDUCE, LOCAL, WAIT, SIGNAL but was GEM",
        "braid.profile/1     | braid.profile/9      | must be \"braid.profile/1\" but was \"braid.profile/9\"",
        "\"rank\":1          | \"rank\":2           | rank must be 0..1 but was 2 of 2",
        "[0,0,0,0,           | [0,0,9,0,            | entry 9 of `stages`",
        "[0,0,0,0,           | [7,0,0,0,            | iteration must be 0..1 but was 7",
        "[0,0,0,0,           | [0,0,0,              | must be rows of 10 whole numbers",
      })
  void damagedJsonIsAOneLineError(String original, String replacement, String message) {
    var json = PROFILE.toJson();
    assertThat(json).contains(original);
    var damaged = json.replaceFirst(Pattern.quote(original), replacement);

    assertThatThrownBy(() -> ProfileJson.read(damaged))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining(message)
        .hasMessageMatching("[^\\n]*");
  }

  @Test
  void cutOrTrailingJsonIsAOneLineError() {
    var json = PROFILE.toJson();
    for (int length : new int[] {0, 1, json.length() / 2, json.length() - 1}) {
      assertThatThrownBy(() -> ProfileJson.read(json.substring(0, length)))
          .isInstanceOf(BraidException.class)
          .hasMessageMatching("profile[^\\n]*");
    }
    assertThatThrownBy(() -> ProfileJson.read(json + "{}")).isInstanceOf(BraidException.class);
    assertThatThrownBy(() -> ProfileJson.read("[]"))
        .hasMessage("profile must be a JSON object but was []");
  }

  @Test
  void countersComeBackAndMayBeMissing() {
    var counted = new SyntheticReduction(2, 1, 2, 1, 10, 10).profile(1);
    var json = counted.toJson();
    assertThat(counted.counters()).hasSize(6);

    assertThat(ProfileJson.read(json)).isEqualTo(counted);
    var first = json.replaceFirst("\"counters\":\\{[^}]*},", "");
    assertThat(first).doesNotContain("counters");
    assertThat(ProfileJson.read(first).counters()).isEmpty();
    assertThat(ProfileJson.read(first).spans()).isEqualTo(counted.spans());
    assertThatThrownBy(() -> ProfileJson.read(json.replace("\"replays\":1", "\"replays\":1.5")))
        .hasMessage("profile `counters`: `replays` must be a whole number but was 1.5");
    assertThatThrownBy(() -> ProfileJson.read(json.replace("\"replays\":1", "\"replays\":-1")))
        .hasMessage("a counter must be 0 or more but `replays` was -1");
  }

  @Test
  void enginesComeBackAndMayBeMissing() {
    var copied = new Span(0, 1, Stage.COPY, "comm", 1, 2, 3, 0, "copy engine");
    var multiplied = new Span(0, 1, Stage.GEMM, "gemm-0", 2, 9, 0, 5, "a kernel's name");
    var waited = new Span(0, 1, Stage.WAIT, "gemm-0", 1, 2, 0, 0);
    var profile = profile(List.of(10L), List.of(copied, multiplied, waited));
    assertThat(ProfileJson.read(profile.toJson())).isEqualTo(profile);
    assertThat(ProfileSet.of(List.of(profile)).engines().stringColumn("engine").asList())
        .containsExactly("copy engine", "a kernel's name");

    // Written by Braid's first version.
    var first =
        PROFILE
            .toJson()
            .replaceFirst("\"engines\":\\[[^]]*],", "")
            .replaceFirst("\"labels\":\\[[^]]*],", "")
            .replaceAll("((?:-?\\d+,){7}-?\\d+),\\d+,\\d+]", "$1]");
    assertThat(first).doesNotContain("engines");
    assertThat(ProfileJson.read(first)).isEqualTo(PROFILE);
  }

  @Test
  void beginsAndLabelsComeBackAndMayBeMissing() {
    var fetched = new Span(0, 1, Stage.COPY, "comm", 5, 8, 3, 0, "copy engine", "fetch 1 @2");
    var profile =
        new Profile(
            new Place(0, 1),
            new LinkedHashMap<>(),
            List.of(10L, 12L),
            List.of(fetched, new Span(1, 0, Stage.GEMM, "gemm", 15, 20, 0, 1)),
            0,
            new LinkedHashMap<>(),
            List.of(),
            List.of(2L, 13L));
    assertThat(ProfileJson.read(profile.toJson())).isEqualTo(profile);
    assertThat(profile.begin(1)).hasValue(13);

    var before =
        profile
            .toJson()
            .replaceFirst("\"startNanos\":\\[[^]]*],", "")
            .replaceFirst("\"labels\":\\[[^]]*],", "")
            .replaceAll("((?:-?\\d+,){8}-?\\d+),\\d+]", "$1]");
    assertThat(before).doesNotContain("labels", "startNanos");
    var read = ProfileJson.read(before);
    assertThat(read.startNanos()).isEmpty();
    assertThat(read.begin(1)).as("its first span").hasValue(15);
    assertThat(read.spans().getFirst()).isEqualTo(fetched.labelled(""));

    assertThatThrownBy(
            () ->
                new Profile(
                    new Place(0, 1),
                    new LinkedHashMap<>(),
                    List.of(10L, 12L),
                    List.of(),
                    0,
                    new LinkedHashMap<>(),
                    List.of(),
                    List.of(2L)))
        .hasMessage("a profile needs the begin of each of its 2 iterations or of none but has 1");
  }

  @Test
  void refusesWhatCannotHaveHappened() {
    var backwards = new Span(0, 0, Stage.GEMM, "s", 5, 4, 0, 0);
    assertThatThrownBy(() -> profile(List.of(10L), List.of(backwards)))
        .hasMessageContaining("must not end before it starts");
    assertThatThrownBy(() -> profile(List.of(), List.of()))
        .hasMessageContaining("at least 1 iteration but rank 0/1 has 0");
  }

  private static Profile profile(List<Long> iterations, List<Span> spans) {
    return new Profile(new Place(0, 1), new LinkedHashMap<>(), iterations, spans, 0);
  }
}
