package braid.natives.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class FeatureTest {
  @ParameterizedTest
  @CsvSource({
    "NCCL_COPY_ENGINES, 2.27.7, false",
    "NCCL_COPY_ENGINES, 2.28.0, true",
    "NCCL_COPY_ENGINES, 2.100.1, true",
    "NCCL_COPY_ENGINES, 3.0.0, true",
    "FP8, 8.6, false",
    "FP8, 8.9, true",
    "FP8, 12.0, true",
    "BULK_COPIES, 8.9, false",
    "BULK_COPIES, 9.0, true",
    "KERNELS, 7.5, false",
    "KERNELS, 8.0, true",
    "RANKS, 12.9, false",
    "RANKS, 13.0, true",
    "PROFILES, 12.8.90, false",
    "PROFILES, 13.0.85, true",
    "NVSHMEM, 2.11.0, false",
    "NVSHMEM, 3.4.5, true",
    "FUSED_COLLECTIVES, 0.7.1, false",
    "FUSED_COLLECTIVES, 0.8.0, true",
    "FUSED_COLLECTIVES, 1.0.0, true",
    "ATTENTION, 9.13.1, false",
    "ATTENTION, 9.14.0, true",
    "ATTENTION_BACKWARD, 9.15.1, false",
    "ATTENTION_BACKWARD, 9.19.0, true",
    "PACKED_ATTENTION, 9.18.1, false",
    "PACKED_ATTENTION, 9.19.0, true",
    "GEMMS, 12.6, false",
    "GEMMS, 13.1.0, true",
    "GEMMS, unknown, true",
  })
  void refusesOlderVersions(Feature feature, String found, boolean has) {
    assertThat(feature.isIn(found)).isEqualTo(has);
    assertThat(feature.refusal(found).isEmpty()).isEqualTo(has);
  }

  @Test
  void aRefusalHasBothVersions() {
    assertThat(Feature.NCCL_COPY_ENGINES.refusal("2.21.5"))
        .contains("needs NCCL 2.28, found 2.21.5");
    assertThatThrownBy(() -> Feature.PROFILES.require(Feature.tenThousands(120_800)))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessage("GPU times in profiles: needs CUPTI 13.0, found 12.8.0; install a newer CUPTI");
    assertThatCode(() -> Feature.PROFILES.require("13.0.0")).doesNotThrowAnyException();
  }

  @ParameterizedTest
  @EnumSource
  void everyMinimumIsAVersion(Feature feature) {
    assertThat(Version.of(feature.minimum())).isPresent();
    assertThat(feature.isIn(feature.minimum())).isTrue();
    assertThat(feature.isIn("0.1")).isFalse();
  }

  @Test
  void numbersAsText() {
    assertThat(Feature.cuda(12_090)).isEqualTo("12.9");
    assertThat(Feature.cuda(13_000)).isEqualTo("13.0");
    assertThat(Feature.capability(90)).isEqualTo("9.0");
    assertThat(Feature.capability(121)).isEqualTo("12.1");
    assertThat(Feature.thousands(701)).isEqualTo("0.7.1");
    assertThat(Feature.thousands(1_203)).isEqualTo("1.2.3");
    assertThat(Feature.tenThousands(22_809)).isEqualTo("2.28.9");
    assertThat(Feature.tenThousands(23_007)).isEqualTo("2.30.7");
    assertThat(Feature.tenThousands(130_096)).isEqualTo("13.0.96");
  }
}
