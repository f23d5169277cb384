package braid.internal.library;

import braid.internal.resource.Attachment;
import braid.model.DType;
import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// This rank's part of a tensor that all ranks have, as a library needs it.
///
/// @param attachment what the kind of memory keeps with it, such as a window
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
