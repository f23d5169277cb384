package braid.internal.cuda;

import braid.natives.cuda.Gpu;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;

/// A word of 64 bits in a GPU's memory as the host sees it, beside all streams. For words by which
/// ranks wait, when one of them waits in vain.
public final class DeviceWord {
  private DeviceWord() {}

  public static long read(Gpu gpu, long address) {
    try (var arena = Arena.ofConfined()) {
      gpu.use();
      var word = arena.allocate(ValueLayout.JAVA_LONG);
      gpu.copy(word.address(), address, Long.BYTES);
      return word.get(ValueLayout.JAVA_LONG, 0);
    }
  }

  public static void write(Gpu gpu, long address, long value) {
    try (var arena = Arena.ofConfined()) {
      gpu.use();
      var word = arena.allocateFrom(ValueLayout.JAVA_LONG, value);
      gpu.copy(address, word.address(), Long.BYTES);
    }
  }
}
