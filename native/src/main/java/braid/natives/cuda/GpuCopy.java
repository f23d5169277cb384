package braid.natives.cuda;

/// One of several copies that are given together.
public record GpuCopy(long to, long from, long bytes) {}
