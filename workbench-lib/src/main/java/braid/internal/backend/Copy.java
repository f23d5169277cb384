package braid.internal.backend;

import braid.internal.work.Work;
import java.lang.foreign.MemorySegment;

/// One of several copies that a stream is given together.
public record Copy(Work work, MemorySegment from, MemorySegment to) {}
