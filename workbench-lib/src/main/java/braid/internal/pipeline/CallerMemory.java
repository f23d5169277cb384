package braid.internal.pipeline;

import braid.internal.resource.SymmetricMemory;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// Memory of a caller's tensor, which a plan uses instead of its own.
///
/// @param local this rank's part
/// @param symmetric all ranks' parts, if they are within reach of each other
public record CallerMemory(MemorySegment local, Optional<SymmetricMemory> symmetric) {}
