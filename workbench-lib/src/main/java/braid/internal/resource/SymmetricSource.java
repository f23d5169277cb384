package braid.internal.resource;

/// Supplies symmetric memory. All ranks make the same requests in the same order.
@FunctionalInterface
public interface SymmetricSource {
  SymmetricMemory take(String label, long bytesPerRank);
}
