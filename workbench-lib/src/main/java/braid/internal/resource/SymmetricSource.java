package braid.internal.resource;

import java.util.List;

/// Supplies symmetric memory. All ranks make the same requests in the same order.
public interface SymmetricSource {
  /// Throws an [AllocationFailed] on all ranks if the buffers, symmetric and private, do not fit
  /// into the memory that is free.
  ///
  /// @param remedy how to need less memory, for the message
  void grant(String label, List<BufferRequest> buffers, String remedy);

  SymmetricMemory take(String label, long bytesPerRank);
}
