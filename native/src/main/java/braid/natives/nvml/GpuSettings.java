package braid.natives.nvml;

/// Limits of a GPU as its owner set them; `Nvml.UNKNOWN` if unavailable.
public record GpuSettings(int highestSmClockMhz, int highestMemoryClockMhz, int powerLimitWatts) {}
