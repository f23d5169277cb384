package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class StudyTest {
  private static final int[] SPLITS = {1, 2, 4, 8, 16, 32};
  private static final SyntheticStudy MACHINE = new SyntheticStudy(103e6, 0.005, 12, 7);

  private static Study study() {
    return MACHINE.of(
        SyntheticStudy.overlaps(SPLITS, 1, 2), SyntheticStudy.model(75e6, 28e6, 0.6e6));
  }

  @Test
  void findsTheBestAndSaysSo() {
    var study = study();

    assertThat(study.best().streams()).isEqualTo(2);
    assertThat(study.best().splits()).isIn(8, 16);
    assertThat(study.noise()).isBetween(0.0, 0.02);
    assertThat(study.ties()).doesNotContain(study.best(), Overlap.splits(1), Overlap.splits(32));
    assertThat(study.headline())
        .startsWith("splits=" + study.best().splits() + " streams=2: 8")
        .contains("less than unfused's 103 ms (")
        .contains("with 96% confidence")
        .doesNotContain("\n");
  }

  @Test
  void whereNothingWinsItAdvisesAgainstOverlap() {
    var study = MACHINE.of(SyntheticStudy.overlaps(SPLITS, 1), how -> 103e6 + 1e6 * how.splits());

    assertThat(study.best()).isEqualTo(Overlap.unfused());
    assertThat(study.headline())
        .startsWith("no overlap beats unfused (103 ms) here beyond the noise");
    assertThat(study.table().stringColumn("verdict").get(0)).isEqualTo("reference, best");
    assertThat(study.saved().getLast().value()).isNegative();
  }

  @Test
  void theTableHasTheReferenceAndEveryConfiguration() {
    var study = study();
    var table = study.table();

    assertThat(table.rowCount()).isEqualTo(1 + study.trials().size());
    assertThat(table.columnNames())
        .containsExactly(
            "method",
            "splits",
            "streams",
            "transport",
            "median ms",
            "p10 ms",
            "p90 ms",
            "vs unfused %",
            "from %",
            "to %",
            "verdict");
    assertThat(table.stringColumn("method").get(0)).isEqualTo("unfused");
    for (int row = 1; row < table.rowCount(); row++) {
      var trial = study.trials().get(row - 1);
      assertThat(table.intColumn("splits").get(row)).isEqualTo(trial.overlap().splits());
      assertThat(table.doubleColumn("median ms").get(row)).isEqualTo(trial.medianNanos() / 1e6);
      assertThat(table.doubleColumn("vs unfused %").get(row))
          .isBetween(
              table.doubleColumn("from %").getDouble(row),
              table.doubleColumn("to %").getDouble(row));
    }
    assertThat(table.stringColumn("verdict").asList().stream().filter("best"::equals)).hasSize(1);
    assertThat(table.stringColumn("verdict").asList().stream().filter("ties with best"::equals))
        .hasSize(study.ties().size());
  }

  @Test
  void comesBackFromItsJsonAsItWas() {
    var study = study();
    assertThat(Study.fromJson(study.toJson())).isEqualTo(study);
  }

  @Test
  void damagedJsonIsAOneLineError() {
    var json = study().toJson();
    assertThatThrownBy(() -> Study.fromJson(json.replace("PIPELINED", "MAGIC")))
        .hasMessage(
            "study `trials`: field `method` must be one of PIPELINED, DIRECT, UNFUSED but was MAGIC");
    assertThatThrownBy(() -> Study.fromJson(json.replace("\"ranks\":4,", "")))
        .hasMessage("study: field `ranks` is missing");
    assertThatThrownBy(() -> Study.fromJson(json.substring(9)))
        .isInstanceOf(BraidException.class)
        .hasMessageMatching("study[^\\n]*");
  }

  @Test
  void refusesWhatCannotHaveBeenMeasured() {
    var study = study();
    var trials = new ArrayList<>(study.trials());
    trials.add(trials.getFirst());
    assertThatThrownBy(() -> with(study, trials)).hasMessageContaining("once but twice pipelined");
    var shorter = List.of(new Study.Trial(Overlap.splits(2), List.of(1L)));
    assertThatThrownBy(() -> with(study, shorter)).hasMessageContaining("needs 12 times");
    assertThatThrownBy(() -> with(study, List.of()))
        .hasMessageContaining("at least 1 configuration");
  }

  private static Study with(Study study, List<Study.Trial> trials) {
    return new Study(
        study.problem(), 4, study.seed(), study.unfusedFirst(), study.unfusedAgain(), trials);
  }
}
