package braid.internal.backend;

import braid.internal.library.LibraryCall;
import braid.internal.work.AttentionBlock;
import braid.internal.work.AttentionGradientBlock;
import braid.internal.work.AttentionMerge;
import braid.internal.work.Gemm;
import braid.internal.work.Operand;
import braid.internal.work.Recoding;
import braid.internal.work.Reduction;
import braid.internal.work.Transfer;
import braid.internal.work.Work;
import braid.model.Span;
import braid.model.Stage;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/// Runs work in the order in which it was enqueued, asynchronously to the caller and to other
/// streams. After a failure the remaining work is dropped, streams that wait for it fail too, and
/// the next [#synchronize] throws the failure.
public interface Stream extends AutoCloseable {
  String name();

  /// Assigns the work enqueued from now on to that iteration of a measurement and that step of the
  /// epoch. Work of earlier turns may still be in flight.
  void turn(int iteration, int step);

  /// Notes that all turns but the last `inFlight` are done.
  void settled(int inFlight);

  /// Copies bytes between this rank's memory and another rank's, over the link.
  void copy(Work work, Transfer transfer);

  /// Copies contiguous bytes, as [#copy(Work, Transfer)] does.
  default void copy(Work work, MemorySegment from, MemorySegment to) {
    copy(work, Transfer.of(from, to));
  }

  /// Makes several independent copies, which may be in flight at once; `work` describes them
  /// together. Over [braid.model.Transport#ONE_KERNEL] some may be local.
  void copyAll(Work work, List<Copy> copies);

  /// Copies bytes within this rank's memory.
  void copyLocal(Work work, Transfer transfer);

  /// Copies contiguous bytes within this rank's memory.
  default void copyLocal(Work work, MemorySegment from, MemorySegment to) {
    copyLocal(work, Transfer.of(from, to));
  }

  void recode(Work work, Recoding recoding);

  /// Sets memory of this rank to zero.
  void zero(Work work, MemorySegment memory);

  /// Updates the operand's second form, if it has one, after its source has changed.
  void prepare(Work work, Operand operand);

  void gemm(Work work, Gemm gemm);

  void reduce(Work work, Reduction reduction);

  void attend(Work work, AttentionBlock block);

  void attendGradient(Work work, AttentionGradientBlock gradient);

  void merge(Work work, AttentionMerge merge);

  /// Lets a library enqueue work on this stream of a GPU.
  ///
  /// @param bytes number of bytes that this rank receives or sends
  /// @param flops number of operations, if the library multiplies
  void library(Work work, Stage stage, long bytes, long flops, LibraryCall call);

  /// Sets `rank`'s word to this epoch and step, after all work enqueued before.
  void raise(Work work, Signals signals, int rank, int slot);

  /// Blocks further work until this rank's word `slot` has reached this step of this epoch. The
  /// member `from` raises it.
  void await(Work work, Signals signals, int slot, int from);

  /// Returns an event that is reached when all work enqueued so far is done.
  Event mark();

  /// Creates a stamp for this stream. The caller closes it.
  Stamp stamp();

  /// Blocks further work until another stream has reached the event.
  void await(Work work, Event event);

  /// Waits until all work is done. Throws its failure, if any.
  void synchronize(Supplier<String> description);

  /// Description of the signal or event that the stream waits for, or waited for when its waits
  /// were ended; for messages.
  Optional<String> waitingFor();

  /// Records a span per operation from now on, with times relative to `originNanos`.
  void record(long originNanos);

  /// Stops recording and returns the recorded spans.
  List<Span> recorded();

  /// Drops work that has not begun, waits for work that has, and frees the stream.
  @Override
  void close();
}
