package braid.internal.library;

import braid.internal.resource.Attachment;
import braid.model.DType;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// This rank's part of a symmetric tensor, as a library needs it.
///
/// @param attachment library state of the memory, such as a window
public record TensorPart(DType dtype, MemorySegment memory, Optional<Attachment> attachment) {
  public long address() {
    return memory.address();
  }

  public long bytes() {
    return memory.byteSize();
  }

  public long elements() {
    return bytes() / dtype.bytes();
  }
}
