package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.report.json.ProfileJson;
import braid.model.Activity;
import braid.model.BraidException;
import braid.model.Place;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ProfileTest {
  private static final Profile PROFILE = new SyntheticProfiles(2, 2, 2, 2, 1000, 3000).profile(1);

  @Test
  void aProfileEqualsItsJson() {
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
        "\"size\":2          | \"size\":2.5         | profile.size must be a whole number but was 2.5",
        "\"size\":2          | \"size\":\"2\"       | profile.size must be a whole number but was \"2\"",
        "\"rank\":1,         | \"\":1,              | unknown field",
        "\"rank\":1,         | ''                   | must be JSON but is not: line 1 column ",
        "\"streams\":[       | \"streams\":[7,      | profile.streams[0] must be a string but was 7",
        "\"GEMM\"            | \"GEM\"              | must be one of GEMM, ATTENTION, COPY, REDUCE, LOCAL, WAIT, SIGNAL but was \"GEM\"",
        "braid.profile/1     | braid.profile/9      | must be \"braid.profile/1\" but was \"braid.profile/9\"",
        "\"rank\":1          | \"rank\":2           | rank must be 0..1 but was 2 of 2",
        "[0,0,0,0,           | [0,0,9,0,            | entry 9 of `stages`",
        "[0,0,0,0,           | [7,0,0,0,            | iteration must be 0..1 but was 7",
        "[0,0,0,0,           | [0,0,0,              | `spans` must be rows of 9 whole numbers but one is [0, 0, 0, ",
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
        .hasMessage("profile.counters.replays must be a whole number but was 1.5");
    assertThatThrownBy(() -> ProfileJson.read(json.replace("\"replays\":1", "\"replays\":-1")))
        .hasMessage("a counter must be 0 or more but `replays` was -1");
  }

  @Test
  void activitiesComeBackAndMayBeMissing() {
    var profile = withActivities();
    assertThat(ProfileJson.read(profile.toJson())).isEqualTo(profile);

    // Written by Braid's first version.
    var first =
        PROFILE
            .toJson()
            .replaceFirst("\"labels\":\\[[^]]*],\"kinds\":\\[[^]]*],\"engines\":\\[[^]]*],", "")
            .replaceFirst(",\"activities\":\\[]", "")
            .replaceAll("((?:-?\\d+,){7}-?\\d+),\\d+]", "$1]");
    assertThat(first).doesNotContain("engines", "labels", "activities");
    assertThat(ProfileJson.read(first)).isEqualTo(PROFILE);
  }

  private static Profile withActivities() {
    var fill = new Activity(Activity.Kind.FILL, "fill: SMs", 1, 2, 4);
    var copy = new Activity(Activity.Kind.COPY, "copy engine", 2, 6, 3);
    var kernel = new Activity(Activity.Kind.KERNEL, "a kernel <<<24>>>", 7, 9, 0);
    return new Profile(
        new Place(0, 1),
        new LinkedHashMap<>(),
        List.of(10L),
        List.of(
            new Span(0, 1, Stage.COPY, "comm", 1, 6, 3, 0, List.of(fill, copy, copy), "fetch"),
            new Span(0, 1, Stage.GEMM, "gemm", 7, 9, 0, 5, List.of(kernel), "gemm"),
            new Span(0, 1, Stage.WAIT, "gemm", 1, 2, 0, 0)),
        0,
        new LinkedHashMap<>(),
        List.of(),
        List.of(),
        List.of(kernel),
        Optional.empty(),
        Optional.empty());
  }

  @Test
  void c2EnginesAreThoseOfEveryActivity() {
    var engines = ProfileSet.of(List.of(withActivities())).engines();
    assertThat(engines.stringColumn("stage").asList())
        .containsExactly("copy", "copy", "gemm", "no step");
    assertThat(engines.stringColumn("engine").asList())
        .containsExactly("fill: SMs", "copy engine", "a kernel <<<24>>>", "a kernel <<<24>>>");
    assertThat(engines.doubleColumn("pieces").asList()).containsExactly(1.0, 2.0, 1.0, 1.0);
    assertThat(engines.doubleColumn("ms").asList()).containsExactly(1e-6, 8e-6, 2e-6, 2e-6);
    assertThat(engines.longColumn("bytes").asList()).containsExactly(4L, 6L, 0L, 0L);
  }

  /// Times, bytes and pieces of stages are those of spans, however many activities these have.
  @Test
  void activitiesAreNotCountedTwice() {
    var set = ProfileSet.of(List.of(withActivities()));
    assertThat(set.stages().doubleColumn("copy ms").asList()).containsExactly(5e-6);
    assertThat(set.table().longColumn("bytes").asList()).containsExactly(3L, 0L, 0L);
    assertThat(set.table().stringColumn("engine").asList())
        .containsExactly("fill: SMs, copy engine", "a kernel <<<24>>>", "");
  }

  @Test
  void oneEnginePerSpanOfEarlierProfilesIsItsOnlyActivity() {
    var json =
        """
        {"format":"braid.profile/1","rank":0,"size":1,"configuration":{},"clockErrorNanos":0,
        "iterationNanos":[10],"stages":["COPY","GEMM","LOCAL","WAIT"],"streams":["s"],
        "engines":["copy engine (channel 9)","multiply <<<8>>>","fill: SMs (channel 2)",""],
        "labels":["fetch"],
        "spans":[[0,0,0,0,1,2,3,0,0,0],[0,0,1,0,2,4,0,5,1,0],[0,0,2,0,4,5,7,0,2,0],[0,0,3,0,5,6,0,0,3,0]]}
        """;
    assertThat(ProfileJson.read(json).spans())
        .extracting(Span::activities)
        .containsExactly(
            List.of(new Activity(Activity.Kind.COPY, "copy engine (channel 9)", 1, 2, 3)),
            List.of(new Activity(Activity.Kind.KERNEL, "multiply <<<8>>>", 2, 4, 0)),
            List.of(new Activity(Activity.Kind.FILL, "fill: SMs (channel 2)", 4, 5, 7)),
            List.of());
  }

  @Test
  void anActivityOfAMissingSpanIsAOneLineError() {
    var json = withActivities().toJson();
    assertThat(json).contains("[1,2,2,7,9,0]");
    assertThatThrownBy(() -> ProfileJson.read(json.replace("[1,2,2,7,9,0]", "[3,2,2,7,9,0]")))
        .hasMessage("profile: an activity belongs to span 3, but there are 3");
  }

  @Test
  void beginsAndLabelsComeBackAndMayBeMissing() {
    var fetched = new Span(0, 1, Stage.COPY, "comm", 5, 8, 3, 0).labelled("fetch 1 @2");
    var profile =
        new Profile(
            new Place(0, 1),
            new LinkedHashMap<>(),
            List.of(10L, 12L),
            List.of(fetched, new Span(1, 0, Stage.GEMM, "gemm", 15, 20, 0, 1)),
            0,
            new LinkedHashMap<>(),
            List.of(),
            List.of(2L, 13L),
            List.of(),
            Optional.empty(),
            Optional.empty());
    assertThat(ProfileJson.read(profile.toJson())).isEqualTo(profile);
    assertThat(profile.begin(1)).hasValue(13);

    var before =
        profile
            .toJson()
            .replaceFirst("\"startNanos\":\\[[^]]*],", "")
            .replaceFirst("\"labels\":\\[[^]]*],", "")
            .replaceAll("((?:-?\\d+,){7}-?\\d+),\\d+]", "$1]");
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
                    List.of(2L),
                    List.of(),
                    Optional.empty(),
                    Optional.empty()))
        .hasMessage("a profile needs the begin of each of its 2 iterations or of none but has 1");
  }

  @Test
  void impossibleProfilesAreRefused() {
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
