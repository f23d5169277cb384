package braid.internal.cuda.memory;

import braid.model.MemoryKind;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/// What `auto` takes on a GPU: native memory, else ipc, and then says so once.
final class AutoKind {
  private final Supplier<Optional<String>> noNative;
  private final Consumer<String> print;
  private boolean printed;

  /// @param noNative why there is no native memory; empty where there is
  /// @param say hears the same words on all ranks that take ipc for the same reason, so that a
  ///   session shows one line where they agree
  AutoKind(Supplier<Optional<String>> noNative, Consumer<String> print) {
    this.noNative = noNative;
    this.print = print;
  }

  synchronized MemoryKind take() {
    var why = noNative.get();
    if (why.isEmpty()) {
      return MemoryKind.NATIVE;
    }
    if (!printed) {
      printed = true;
      print.accept(
          "symmetric memory is of kind %s, since auto found no %s: %s"
              .formatted(MemoryKind.IPC, MemoryKind.NATIVE, why.get()));
    }
    return MemoryKind.IPC;
  }
}
