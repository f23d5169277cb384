package braid.internal.work;

import braid.internal.resource.PrivateMemory;
import braid.model.DType;
import java.util.Optional;

/// Right side of multiplications, shared by all chunks of an iteration. The host multiplies in fp32
/// and widens a narrow type into `widened` (stored as the source is) once per iteration, not once
/// per chunk: otherwise more splits would mean more work.
///
/// @param left type of the left sides
public record Operand(Matrix source, DType left, Optional<PrivateMemory> widened)
    implements AutoCloseable {
  @Override
  public void close() {
    widened.ifPresent(PrivateMemory::close);
  }
}
