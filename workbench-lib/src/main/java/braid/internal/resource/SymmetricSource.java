package braid.internal.resource;

/// Hands out memory that all ranks reach. All of them ask for the same, in the same order.
@FunctionalInterface
public interface SymmetricSource {
  SymmetricMemory take(String label, long bytesPerRank);
}
