package braid.natives.nvml;

/// A GPU as the driver describes it.
///
/// @param index the driver's, in the order of PCI addresses
/// @param totalBytes 0 where the GPU shares the memory of the host
/// @param major of the compute capability, 9 for 9.0
/// @param links NVLinks that are up
public record GpuFacts(
    int index,
    String name,
    String uuid,
    long totalBytes,
    long freeBytes,
    int major,
    int minor,
    int links) {}
