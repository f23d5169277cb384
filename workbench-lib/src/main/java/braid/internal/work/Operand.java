package braid.internal.work;

import braid.internal.resource.PrivateMemory;
import braid.model.DType;
import java.util.Optional;

/// The right side of multiplications, which all chunks of an iteration share. The host multiplies
/// in fp32 and widens a narrow type into `widened` (stored as the source is) once an iteration, not
/// once a chunk: otherwise more splits would mean more work.
///
/// @param left the type of the left sides
public record Operand(Matrix source, DType left, Optional<PrivateMemory> widened)
    implements AutoCloseable {
  @Override
  public void close() {
    widened.ifPresent(PrivateMemory::close);
  }
}
