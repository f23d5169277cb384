package braid.natives.nccl;

import org.bytedeco.cuda.nccl.ncclConfig_t;

/// Fills NCCL's configuration struct. Its C initializer is a macro, which is not available in Java.
final class NcclConfiguration {
  /// NCCL's value of an unset field.
  static final int UNDEFINED = Integer.MIN_VALUE;

  static final int MAGIC = 0xcafebeef;

  private NcclConfiguration() {}

  /// Fills the struct with the version of its header. An older library then ignores fields it does
  /// not know, and a newer one uses its defaults for missing fields.
  static ncclConfig_t fill(ncclConfig_t struct, NcclCommunicator.Configuration configuration) {
    return struct
        .size(struct.sizeof())
        .magic(MAGIC)
        .version(org.bytedeco.cuda.global.nccl.NCCL_VERSION_CODE)
        .blocking(1)
        .cgaClusterSize(UNDEFINED)
        .minCTAs(orUndefined(configuration.minCtas()))
        .maxCTAs(orUndefined(configuration.maxCtas()))
        .netName(null)
        .splitShare(UNDEFINED)
        .trafficClass(UNDEFINED)
        .commName(null)
        .collnetEnable(UNDEFINED)
        .CTAPolicy(
            configuration.copyEngines()
                ? org.bytedeco.cuda.global.nccl.NCCL_CTA_POLICY_ZERO
                : UNDEFINED)
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
