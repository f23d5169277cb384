package braid.natives.cudnn;

import braid.natives.cuda.Address;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.bytedeco.cuda.cudnn.cudnnBackendDescriptor_t;
import org.bytedeco.cuda.global.cudnn;

/// A descriptor of cuDNN's backend API: attributes are set, then it is finished. cuDNN copies what
/// is set, but not the descriptors that it refers to.
final class Descriptor implements AutoCloseable {
  private final Cudnn owner;
  private final String name;
  private final cudnnBackendDescriptor_t pointer = new cudnnBackendDescriptor_t();
  private boolean closed;

  /// @param type a `CUDNN_BACKEND_*_DESCRIPTOR`
  /// @param name for errors
  Descriptor(Cudnn owner, int type, String name) {
    this.owner = owner;
    this.name = name;
    owner.check(
        "cudnnBackendCreateDescriptor for " + name,
        cudnn.cudnnBackendCreateDescriptor(type, pointer));
  }

  cudnnBackendDescriptor_t pointer() {
    return pointer;
  }

  Descriptor longs(int attribute, long... values) {
    try (var arena = Arena.ofConfined()) {
      return set(
          attribute,
          cudnn.CUDNN_TYPE_INT64,
          values.length,
          arena.allocateFrom(ValueLayout.JAVA_LONG, values));
    }
  }

  /// @param type `CUDNN_TYPE_*` of an enumeration
  Descriptor choice(int attribute, int type, int value) {
    try (var arena = Arena.ofConfined()) {
      return set(attribute, type, 1, arena.allocateFrom(ValueLayout.JAVA_INT, value));
    }
  }

  Descriptor flag(int attribute, boolean value) {
    try (var arena = Arena.ofConfined()) {
      return set(
          attribute,
          cudnn.CUDNN_TYPE_BOOLEAN,
          1,
          arena.allocateFrom(ValueLayout.JAVA_BYTE, (byte) (value ? 1 : 0)));
    }
  }

  Descriptor handle(int attribute) {
    return addresses(attribute, cudnn.CUDNN_TYPE_HANDLE, owner.handle().address());
  }

  Descriptor pointers(int attribute, long... addresses) {
    return addresses(attribute, cudnn.CUDNN_TYPE_VOID_PTR, addresses);
  }

  Descriptor one(int attribute, Descriptor other) {
    return all(attribute, List.of(other));
  }

  Descriptor all(int attribute, List<Descriptor> others) {
    return addresses(
        attribute,
        cudnn.CUDNN_TYPE_BACKEND_DESCRIPTOR,
        others.stream().mapToLong(other -> other.pointer.address()).toArray());
  }

  private Descriptor addresses(int attribute, int type, long... addresses) {
    try (var arena = Arena.ofConfined()) {
      return set(
          attribute, type, addresses.length, arena.allocateFrom(ValueLayout.JAVA_LONG, addresses));
    }
  }

  private Descriptor set(int attribute, int type, long count, MemorySegment values) {
    owner.check(
        "cudnnBackendSetAttribute %d of %s".formatted(attribute, name),
        cudnn.cudnnBackendSetAttribute(
            pointer, attribute, type, count, new Address(values.address())));
    return this;
  }

  Descriptor finish() {
    owner.check("cudnnBackendFinalize of " + name, cudnn.cudnnBackendFinalize(pointer));
    return this;
  }

  long number(int attribute) {
    try (var arena = Arena.ofConfined()) {
      var value = arena.allocate(ValueLayout.JAVA_LONG);
      owner.check(
          "cudnnBackendGetAttribute %d of %s".formatted(attribute, name),
          cudnn.cudnnBackendGetAttribute(
              pointer,
              attribute,
              cudnn.CUDNN_TYPE_INT64,
              1,
              new long[1],
              new Address(value.address())));
      return value.get(ValueLayout.JAVA_LONG, 0);
    }
  }

  /// Returns the number of descriptors of an attribute.
  int count(int attribute) {
    var count = new long[1];
    owner.check(
        "cudnnBackendGetAttribute %d of %s".formatted(attribute, name),
        cudnn.cudnnBackendGetAttribute(
            pointer, attribute, cudnn.CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, count, null));
    return Math.toIntExact(count[0]);
  }

  /// Fills new descriptors with those of an attribute; returns how many it filled.
  int get(int attribute, List<Descriptor> target) {
    try (var arena = Arena.ofConfined()) {
      var addresses =
          arena.allocateFrom(
              ValueLayout.JAVA_LONG,
              target.stream().mapToLong(each -> each.pointer.address()).toArray());
      var count = new long[1];
      owner.check(
          "cudnnBackendGetAttribute %d of %s".formatted(attribute, name),
          cudnn.cudnnBackendGetAttribute(
              pointer,
              attribute,
              cudnn.CUDNN_TYPE_BACKEND_DESCRIPTOR,
              target.size(),
              count,
              new Address(addresses.address())));
      return Math.toIntExact(Math.min(count[0], target.size()));
    }
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      owner.check(
          "cudnnBackendDestroyDescriptor of " + name, cudnn.cudnnBackendDestroyDescriptor(pointer));
      pointer.close();
    }
  }
}
