package braid.natives.nvml;

/// Description of a GPU by the driver.
///
/// @param index the driver's index, in the order of PCI addresses
/// @param totalBytes 0 if the GPU shares the memory of the host
/// @param major major compute capability, 9 for 9.0
/// @param links number of NVLinks that are up
public record GpuFacts(
    int index,
    String name,
    String uuid,
    long totalBytes,
    long freeBytes,
    int major,
    int minor,
    int links) {}
