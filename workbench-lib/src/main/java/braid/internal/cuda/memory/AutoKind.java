package braid.internal.cuda.memory;

import braid.model.MemoryKind;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/// Resolves `auto` on a GPU: native memory if available, otherwise ipc, with one printed line.
final class AutoKind {
  private final Supplier<Optional<String>> noNative;
  private final Consumer<String> print;
  private boolean printed;

  /// @param noNative reason why native memory is not available; empty if it is
  /// @param print receives the same line on all ranks that use ipc for the same reason, so that a
  ///   session merges them
  AutoKind(Supplier<Optional<String>> noNative, Consumer<String> print) {
    this.noNative = noNative;
    this.print = print;
  }

  synchronized MemoryKind take() {
    var reason = noNative.get();
    if (reason.isEmpty()) {
      return MemoryKind.NATIVE;
    }
    if (!printed) {
      printed = true;
      print.accept(
          "symmetric memory is of kind %s, since auto found no %s: %s"
              .formatted(MemoryKind.IPC, MemoryKind.NATIVE, reason.get()));
    }
    return MemoryKind.IPC;
  }
}
