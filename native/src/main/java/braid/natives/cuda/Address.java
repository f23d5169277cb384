package braid.natives.cuda;

import org.bytedeco.javacpp.Pointer;

/// An address for calls that want a pointer. One is made once and moved: a call then allocates
/// nothing. It owns nothing.
public final class Address extends Pointer {
  public Address() {}

  public Address(long address) {
    this.address = address;
  }

  /// Points elsewhere; 0 is the null pointer.
  public Address to(long address) {
    this.address = address;
    return this;
  }
}
