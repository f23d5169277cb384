package braid.internal.report.value;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.GemmSpec;
import braid.model.Overlap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.Set;
import org.junit.jupiter.api.Test;

class ConfigurationLabelTest {
  private static SequencedMap<String, String> configuration(Overlap tuning) {
    var columns = new LinkedHashMap<>(GemmSpec.allGatherGemm(3840, 2304, 640).columns());
    columns.putAll(tuning.columns());
    columns.put("ranks", "4");
    columns.put("backend", "host");
    columns.put("link", "250MB/s,20us");
    columns.put("memory", "native");
    return columns;
  }

  @Test
  void aConfigurationIsProblemTuningAndMachineInWords() {
    var columns = configuration(Overlap.pipelined(4));
    assertThat(ConfigurationLabel.problem(columns))
        .isEqualTo("all-gather → GEMM, 3840×2304×640 fp32, 4 ranks");
    assertThat(ConfigurationLabel.brief(columns))
        .isEqualTo("all-gather → GEMM, 3840×2304×640 fp32, 4 ranks: pipelined, 4 splits");
    assertThat(ConfigurationLabel.of(columns))
        .isEqualTo(
            ConfigurationLabel.brief(columns)
                + "; host backend, link 250 MB/s and 20 µs, native memory");
    assertThat(ConfigurationLabel.brief(configuration(Overlap.unfused()))).endsWith(": unfused");
    assertThat(ConfigurationLabel.brief(configuration(Overlap.ring(2).streams(3).replay())))
        .endsWith(": ring, 2 splits, 3 streams, replayed");
  }

  @Test
  void collectivesHaveTheirShapeAndType() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("pattern", "all-reduce");
    columns.put("shape", "1048576");
    columns.put("dtype", "fp32");
    columns.put("transport", "copy_engine");
    columns.put("ranks", "4");
    assertThat(ConfigurationLabel.of(columns)).isEqualTo("all-reduce, 1048576 fp32, 4 ranks");
  }

  @Test
  void aTuningIsNamedByItsVaryingOptions() {
    var tuning = Overlap.pipelined(4).streams(2);
    assertThat(ConfigurationLabel.distinguishing(tuning, Set.of("splits"))).isEqualTo("4 splits");
    assertThat(ConfigurationLabel.distinguishing(tuning, Set.of("splits", "streams")))
        .isEqualTo("4 splits, 2 streams");
    assertThat(ConfigurationLabel.distinguishing(Overlap.bulk(), Set.of("method", "splits")))
        .isEqualTo("bulk");
    assertThat(ConfigurationLabel.distinguishing(tuning, Set.of("replayed")))
        .isEqualTo("pipelined, 4 splits, 2 streams");
  }

  @Test
  void namesAreShortAndDiffer() {
    var sets =
        List.of(
            configuration(Overlap.unfused()),
            configuration(Overlap.pipelined(4)),
            configuration(Overlap.pipelined(8)),
            configuration(Overlap.pipelined(4)));
    assertThat(ConfigurationLabel.names(sets))
        .containsExactly(
            "unfused",
            "pipelined, 4 splits, run 1",
            "pipelined, 8 splits",
            "pipelined, 4 splits, run 2");
    assertThat(ConfigurationLabel.names(sets.subList(1, 2))).containsExactly("pipelined, 4 splits");
    var larger = new LinkedHashMap<>(sets.getFirst());
    larger.put("m", "7680");
    larger.put("n", "4608");
    assertThat(ConfigurationLabel.names(List.of(sets.getFirst(), larger)))
        .as("as many columns as distinguish them")
        .containsExactly("m 3840", "m 7680");
  }
}
