package braid.internal.resource;

import java.util.List;

/// A buffer that the members of a group are about to allocate.
///
/// @param bytes bytes of each member
/// @param symmetric true if other members can access it
public record BufferRequest(String name, boolean symmetric, List<Long> bytes) {
  public BufferRequest {
    bytes = List.copyOf(bytes);
  }
}
