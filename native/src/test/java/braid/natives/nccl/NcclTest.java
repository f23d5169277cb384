package braid.natives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.abort;

import braid.natives.load.BraidNativeMissing;
import braid.natives.load.Feature;
import org.bytedeco.cuda.nccl.ncclConfig_t;
import org.junit.jupiter.api.Test;

class NcclTest {
  private static final int UNDEFINED = Integer.MIN_VALUE;

  @Test
  void errorsHaveNamesAndRemedies() {
    assertThat(Nccl.name(5)).isEqualTo("ncclInvalidUsage");
    assertThat(Nccl.name(77)).isEqualTo("ncclResult 77");
    assertThat(Nccl.remedy(6)).contains("other ranks");
    assertThat(Nccl.remedy(1)).contains("NCCL_DEBUG=WARN");
  }

  @Test
  void typesHaveTheNumbersAndSizesOfTheHeader() {
    assertThat(Nccl.Type.values())
        .extracting(Nccl.Type::number)
        .containsExactly(7, 9, 6, 0, 10, 11);
    assertThat(Nccl.Type.values()).extracting(Nccl.Type::bytes).containsExactly(4, 2, 2, 1, 1, 1);
  }

  @Test
  void limitsMustAgree() {
    assertThatThrownBy(() -> new NcclCommunicator.Configuration(false, 8, 4))
        .hasMessageContaining("1 ≤ min ≤ max but were 8 and 4");
    assertThatThrownBy(() -> new NcclCommunicator.Configuration(false, -1, 0))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(new NcclCommunicator.Configuration(true, 4, 0).minCtas()).isEqualTo(4);
  }

  @Test
  void unsetVariablesAreLeftToNccl() {
    load();
    try (var struct = new ncclConfig_t()) {
      NcclConfiguration.fill(struct, new NcclCommunicator.Configuration(false, 0, 0));
      assertThat(struct.size()).isEqualTo(struct.sizeof());
      assertThat(struct.magic()).isEqualTo(0xcafebeef);
      assertThat(struct.version()).isEqualTo(22903);
      assertThat(struct.blocking()).isEqualTo(1);
      assertThat(struct.netName()).isNull();
      assertThat(struct.commName()).isNull();
      assertThat(
              new int[] {
                struct.cgaClusterSize(),
                struct.minCTAs(),
                struct.maxCTAs(),
                struct.splitShare(),
                struct.trafficClass(),
                struct.collnetEnable(),
                struct.CTAPolicy(),
                struct.shrinkShare(),
                struct.nvlsCTAs(),
                struct.nChannelsPerNetPeer(),
                struct.nvlinkCentricSched(),
                struct.graphUsageMode(),
                struct.numRmaCtx()
              })
          .containsOnly(UNDEFINED);
    }
  }

  @Test
  void setVariablesReachNccl() {
    load();
    try (var struct = new ncclConfig_t()) {
      NcclConfiguration.fill(struct, new NcclCommunicator.Configuration(true, 2, 16));
      assertThat(struct.CTAPolicy()).isEqualTo(2);
      assertThat(struct.minCTAs()).isEqualTo(2);
      assertThat(struct.maxCTAs()).isEqualTo(16);
    }
  }

  @Test
  void aCallNamesTheVersionThatItNeeds() {
    load();
    assertThat(Nccl.has("ncclAllGather")).isTrue();
    assertThatThrownBy(() -> Nccl.need(Feature.NCCL, "ncclOfTheFuture"))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessage(
            "collectives by NCCL: needs ncclOfTheFuture, which NCCL %s lacks; install a newer NCCL"
                .formatted(Feature.tenThousands(Nccl.version())));
  }

  private static void load() {
    try {
      assertThat(Nccl.version()).isPositive();
    } catch (BraidNativeMissing | LinkageError e) {
      abort("NCCL cannot be used here: " + e);
    }
  }
}
