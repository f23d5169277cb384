package braid.internal.remote;

import braid.internal.shared.SignalWord;
import braid.natives.ucx.UcxWorker;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// Memory of this rank that ranks of other hosts reach. It is freed after its owner has closed it
/// and all of them have closed their windows, or have ended.
final class Exports {
  private final Map<Long, Export> open = new ConcurrentHashMap<>();
  private final AtomicLong last = new AtomicLong();

  /// One export.
  ///
  /// @param mapping null if other ranks reach it by messages only
  /// @param holders ranks that have not closed their windows
  /// @param free what frees the memory, once its owner has closed it
  record Export(
      long number,
      MemorySegment memory,
      UcxWorker.@Nullable Mapping mapping,
      Set<Integer> holders,
      CompletableFuture<Runnable> free) {}

  Export add(MemorySegment memory, UcxWorker.@Nullable Mapping mapping, Set<Integer> holders) {
    var holding = ConcurrentHashMap.<Integer>newKeySet();
    holding.addAll(holders);
    var export =
        new Export(last.incrementAndGet(), memory, mapping, holding, new CompletableFuture<>());
    open.put(export.number(), export);
    return export;
  }

  /// Closes an export on the owner's side.
  void close(Export export, Runnable free) {
    export.free().complete(free);
    freeUnused(export);
  }

  /// Sets a word. Messages to memory that was closed are dropped.
  void raise(Message.Raise raise) {
    var export = open.get(raise.export());
    if (export != null) {
      SignalWord.raise(export.memory(), raise.offset(), raise.epoch(), raise.step());
    }
  }

  /// Stores bytes.
  void store(Message.Store store) {
    var export = open.get(store.export());
    if (export != null) {
      Message.store(
          export.memory().asSlice(store.offset(), store.bytes().byteSize()), store.bytes());
    }
  }

  /// Removes a holder that has closed its window.
  void release(Message.Released released) {
    var export = open.get(released.export());
    if (export != null && export.holders().remove(released.rank())) {
      freeSoon(List.of(export));
    }
  }

  /// Removes a rank that closes no windows any more.
  void forget(int holder) {
    freeSoon(open.values().stream().filter(each -> each.holders().remove(holder)).toList());
  }

  /// Frees memory on another thread: the worker's is in a call of UCX.
  private void freeSoon(List<Export> closing) {
    if (!closing.isEmpty()) {
      Thread.ofVirtual().start(() -> closing.forEach(this::freeUnused));
    }
  }

  private void freeUnused(Export export) {
    var free = export.free().getNow(null);
    if (free != null && export.holders().isEmpty() && open.remove(export.number(), export)) {
      var mapping = export.mapping();
      if (mapping != null) {
        mapping.close();
      }
      free.run();
    }
  }

  /// Frees what its owner has closed, after the worker was closed: nobody writes to it any more.
  void freeAll() {
    for (var export : List.copyOf(open.values())) {
      export.holders().clear();
      freeUnused(export);
    }
  }
}
