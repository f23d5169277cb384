package braid.natives.cuda;

/// One copy of a batch.
public record GpuCopy(long to, long from, long bytes) {}
