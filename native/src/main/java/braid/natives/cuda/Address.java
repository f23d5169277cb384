package braid.natives.cuda;

import org.bytedeco.javacpp.Pointer;

/// A mutable address for calls that take a pointer. One instance is reused, so a call allocates
/// nothing. It owns no memory.
public final class Address extends Pointer {
  public Address() {}

  public Address(long address) {
    this.address = address;
  }

  /// Changes the address; 0 is the null pointer.
  public Address to(long address) {
    this.address = address;
    return this;
  }
}
