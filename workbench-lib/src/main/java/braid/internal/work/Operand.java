package braid.internal.work;

import braid.internal.resource.PrivateMemory;
import java.util.Optional;

/// The right side of multiplications, which all chunks of an iteration share. The host multiplies
/// in fp32 and widens a narrow type into `widened` (stored as the source is) once an iteration, not
/// once a chunk: otherwise more splits would mean more work.
public record Operand(Matrix source, Optional<PrivateMemory> widened) implements AutoCloseable {
  @Override
  public void close() {
    widened.ifPresent(PrivateMemory::close);
  }
}
