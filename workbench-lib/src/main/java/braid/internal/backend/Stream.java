package braid.internal.backend;

import braid.internal.library.LibraryCall;
import braid.internal.work.Gemm;
import braid.internal.work.Operand;
import braid.internal.work.Reduction;
import braid.internal.work.Transfer;
import braid.internal.work.Work;
import braid.model.Span;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/// Work done in the order it was given, beside the caller and beside other streams. What fails is
/// thrown by the next [#synchronize]; the work after it is dropped, and streams that wait for it
/// fail with it.
public interface Stream extends AutoCloseable {
  String name();

  /// From here on work is of that iteration of a measurement and of that step of the epoch. Work of
  /// earlier turns may still be in flight.
  void turn(int iteration, int step);

  /// Says that all turns but the last `inFlight` are done.
  void settled(int inFlight);

  /// Moves bytes between this rank's memory and another's, over the link.
  void copy(Work work, Transfer transfer);

  /// The same of bytes in one piece.
  default void copy(Work work, MemorySegment from, MemorySegment to) {
    copy(work, Transfer.of(from, to));
  }

  /// Moves bytes as `copy` does, in several places that do not need each other and so may be on
  /// their way at once; `work` is all of it.
  void copyAll(Work work, List<Copy> copies);

  /// Moves bytes within this rank's memory.
  void copyLocal(Work work, Transfer transfer);

  /// The same of bytes in one piece.
  default void copyLocal(Work work, MemorySegment from, MemorySegment to) {
    copyLocal(work, Transfer.of(from, to));
  }

  /// Sets memory of this rank to zero.
  void zero(Work work, MemorySegment memory);

  /// Makes the operand ready for multiplications after its source has changed.
  void prepare(Work work, Operand operand);

  void gemm(Work work, Gemm gemm);

  void reduce(Work work, Reduction reduction);

  /// Has a library put that on this stream of a GPU.
  ///
  /// @param bytes that come to this rank, or leave it
  void library(Work work, long bytes, LibraryCall call);

  /// Sets `rank`'s word to this epoch and step, after all work given before.
  void raise(Work work, Signals signals, int rank, int slot);

  /// Holds further work until this rank's word `slot` has come to this step of this epoch. The
  /// member `from` raises it.
  void await(Work work, Signals signals, int slot, int from);

  /// The point that all work given so far is done.
  Event mark();

  /// A stamp that can be set on this stream. Its user closes it.
  Stamp stamp();

  /// Holds further work until another stream has come to that point.
  void await(Work work, Event event);

  /// Waits until all work is done, and throws what failed.
  void synchronize(Supplier<String> description);

  /// What the stream waits for just now, or did when its waits were ended; for messages.
  Optional<String> waitingFor();

  /// Keeps a span of each piece of work from here on, with times after `originNanos`.
  void record(long originNanos);

  /// What was kept; nothing more is.
  List<Span> recorded();

  /// Drops what has not begun, waits for what has, and ends.
  @Override
  void close();
}
