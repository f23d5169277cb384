package braid.internal.pipeline;

import braid.internal.resource.SymmetricMemory;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// Memory of a caller's tensor that a plan uses instead of allocating its own.
///
/// @param local this rank's part
/// @param symmetric parts of all ranks, if ranks can access each other's
public record CallerMemory(MemorySegment local, Optional<SymmetricMemory> symmetric) {}
