package braid.natives.nccl;

import org.bytedeco.cuda.nccl.ncclConfig_t;

/// Fills the struct that NCCL is configured by. Its C initializer is a macro, which Java has not.
final class NcclConfiguration {
  /// What NCCL takes for a field that nobody has set.
  static final int UNDEFINED = Integer.MIN_VALUE;

  static final int MAGIC = 0xcafebeef;

  private NcclConfiguration() {}

  /// The struct says which header it was compiled by, so that an older library leaves alone what it
  /// does not know, and a newer one takes its own defaults for what this header has not.
  static ncclConfig_t fill(ncclConfig_t struct, NcclCommunicator.Configuration how) {
    return struct
        .size(struct.sizeof())
        .magic(MAGIC)
        .version(org.bytedeco.cuda.global.nccl.NCCL_VERSION_CODE)
        .blocking(1)
        .cgaClusterSize(UNDEFINED)
        .minCTAs(orUndefined(how.minCtas()))
        .maxCTAs(orUndefined(how.maxCtas()))
        .netName(null)
        .splitShare(UNDEFINED)
        .trafficClass(UNDEFINED)
        .commName(null)
        .collnetEnable(UNDEFINED)
        .CTAPolicy(
            how.copyEngines() ? org.bytedeco.cuda.global.nccl.NCCL_CTA_POLICY_ZERO : UNDEFINED)
        .shrinkShare(UNDEFINED)
        .nvlsCTAs(UNDEFINED)
        .nChannelsPerNetPeer(UNDEFINED)
        .nvlinkCentricSched(UNDEFINED)
        .graphUsageMode(UNDEFINED)
        .numRmaCtx(UNDEFINED);
  }

  private static int orUndefined(int value) {
    return value == 0 ? UNDEFINED : value;
  }
}
