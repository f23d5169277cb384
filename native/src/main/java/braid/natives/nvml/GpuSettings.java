package braid.natives.nvml;

/// What a GPU may do at most, as its owner set it; `Nvml.UNKNOWN` for what it does not tell.
public record GpuSettings(int highestSmClockMhz, int highestMemoryClockMhz, int powerLimitWatts) {}
