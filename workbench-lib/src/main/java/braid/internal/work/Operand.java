package braid.internal.work;

import braid.internal.resource.PrivateMemory;
import braid.model.DType;
import java.util.Optional;

/// Right operand of the GEMMs of all chunks of an iteration. The host multiplies in fp32. It widens
/// a narrow type once per iteration, not once per chunk: otherwise more splits would mean more
/// work.
///
/// @param left type of the left operands
/// @param widened memory for the widened right operand, in the storage order of the source; empty
///   if nothing is widened
public record Operand(Matrix source, DType left, Optional<PrivateMemory> widened)
    implements AutoCloseable {
  @Override
  public void close() {
    widened.ifPresent(PrivateMemory::close);
  }
}
