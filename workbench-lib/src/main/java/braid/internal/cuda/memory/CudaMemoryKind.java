package braid.internal.cuda.memory;

import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;

/// One kind of symmetric memory. What fails on one rank is undone on all and fails on all, so that
/// it can be tried again.
interface CudaMemoryKind extends AutoCloseable {
  /// Memory on every member, each part zeroed; all members call it together.
  SymmetricMemory allocate(String label, long bytesPerRank, Rendezvous rendezvous);

  @Override
  void close();
}
