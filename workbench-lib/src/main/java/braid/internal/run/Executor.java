package braid.internal.run;

import braid.internal.backend.Channels;
import braid.internal.backend.Channels.Channel;
import braid.internal.backend.Copy;
import braid.internal.backend.Event;
import braid.internal.backend.Signals;
import braid.internal.backend.Stream;
import braid.internal.work.AttentionBlock;
import braid.internal.work.AttentionGradientBlock;
import braid.internal.work.AttentionMerge;
import braid.internal.work.Epilogue;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.internal.work.Recoding;
import braid.internal.work.Reduction;
import braid.internal.work.Transfer;
import braid.internal.work.Work;
import braid.model.AttentionGradientSpec;
import braid.model.Scales;
import braid.model.Transport;
import braid.schedule.Buffer;
import braid.schedule.Finish;
import braid.schedule.Flag;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Step;
import braid.schedule.draw.Labels;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Enqueues one rank's steps of a schedule. The constructor resolves regions to memory, lanes to
/// streams and words to slots, so that laying it out again costs one call per step.
public final class Executor {
  /// Maps the names of a schedule to memory and streams of this rank.
  public interface Resources {
    /// Returns the buffer of `rank` in this rank's address space.
    MemorySegment memory(Buffer buffer, int rank);

    /// Returns the streams of all lanes.
    Map<Lane, Stream> lanes();

    Signals signals();

    /// Returns the prepared form of a weight.
    Operand operand(Region weight);

    /// Returns how the schedule crosses hosts; empty if every rank has an address of all memory.
    default Optional<Crossed> crossed() {
      return Optional.empty();
    }

    /// Enqueues a library's collective on a stream.
    void call(Step.LibraryCall call, Stream stream, Work work);

    /// Enqueues a library's multiplication with its collective on a stream.
    default void call(WholeOperation operation, Stream stream, Work work) {
      throw new IllegalStateException("no library multiplies here: " + operation);
    }
  }

  /// What this rank needs for the messages of a schedule that crosses hosts.
  ///
  /// @param streams streams of the channels whose passive rank this one is
  public record Crossed(
      Crossing crossing, Channels channels, Map<Channel, Stream> streams, Scratch scratch) {}

  /// Memory of this rank for messages, by name: the same name is the same memory.
  @FunctionalInterface
  public interface Scratch {
    MemorySegment of(String name, long bytes);
  }

  private final Schedule schedule;
  private final int rank;
  private final Resources resources;
  private final Supplier<String> label;
  private final Scales scales;
  private final Map<String, Integer> slots = new HashMap<>();
  private final Optional<WholeOperation> whole;
  private final Optional<Correspondence> correspondence;
  private final List<Runnable> steps = new ArrayList<>();
  private @Nullable Labels labels;
  private Event[] marks = {};

  /// @param scales used by [Finish#scaled] and [Finish#rescaled]
  /// @param label names the execution in messages
  public Executor(
      Schedule schedule, int rank, Resources resources, Scales scales, Supplier<String> label) {
    this.resources = resources;
    this.scales = scales;
    this.label = label;
    this.schedule = schedule;
    this.rank = rank;
    this.whole = WholeOperation.of(schedule.steps(rank));
    int slot = 0;
    for (var flag : schedule.flags()) {
      slots.put(flag.name(), slot);
      slot += flag.words();
    }
    this.correspondence =
        resources
            .crossed()
            .map(crossed -> new Correspondence(rank, crossed, this::matrix, this::raise));
    int markCount = 0;
    for (var step : schedule.steps(rank)) {
      steps.add(ready(step));
      markCount += step instanceof Step.Mark ? 1 : 0;
    }
    correspondence.ifPresent(each -> steps.addAll(each.answered()));
    this.marks = new Event[markCount];
  }

  /// Returns the number of signal words per rank for a schedule's flags; at least one, because no
  /// symmetric memory is empty.
  public static int words(Schedule schedule) {
    return Math.max(1, schedule.flags().stream().mapToInt(Flag::words).sum());
  }

  /// Enqueues all steps on their streams.
  public void layOut() {
    for (var step : steps) {
      step.run();
    }
  }

  private boolean isDeterministic() {
    return schedule.goal() instanceof Goal.Solution(AttentionGradientSpec spec, var _)
        && spec.isDeterministic();
  }

  private Runnable ready(Step step) {
    var stream = Objects.requireNonNull(resources.lanes().get(step.lane()));
    var work =
        new Work(step.chunk(), () -> text(step) + " of " + label.get(), () -> shortName(step));
    if (whole.isPresent() && whole.get().includes(step)) {
      var operation = whole.get();
      return operation.last().equals(step)
          ? () -> resources.call(operation, stream, work)
          : () -> {};
    }
    var messages = correspondence.map(each -> each.sent(step, stream, work)).orElseGet(List::of);
    var own = own(step, stream, work);
    if (messages.isEmpty()) {
      return own;
    }
    return () -> {
      messages.forEach(Runnable::run);
      own.run();
    };
  }

  /// Returns the work of a step, except its messages.
  private Runnable own(Step step, Stream stream, Work work) {
    return switch (step) {
      case Step.Copy copy -> copy(copy, stream, work);
      case Step.Recode recode -> {
        boolean rounds = recode.rounds();
        var each =
            recode.moves().stream()
                .map(
                    move ->
                        new Recoding(
                            matrix(rounds ? move.from() : move.to()),
                            matrix(rounds ? move.to() : move.from()),
                            recode.headSize(),
                            rounds))
                .toList();
        yield () -> each.forEach(recoding -> stream.recode(work, recoding));
      }
      case Step.Gemm gemm -> gemm(gemm, stream, work);
      case Step.Reduce reduce -> {
        var reduction =
            new Reduction(
                reduce.parts().stream().map(part -> part(reduce, part)).toList(),
                matrix(reduce.output()),
                epilogue(reduce.finish(), reduce.output()),
                reduce.linkBytes(rank));
        yield () -> stream.reduce(work, reduction);
      }
      case Step.Attend attend -> {
        var block = block(attend);
        yield () -> stream.attend(work, block);
      }
      case Step.AttendGradient backward -> {
        var gradient =
            new AttentionGradientBlock(
                block(backward.block()),
                matrix(backward.outputGradient()),
                matrix(backward.result().query()),
                matrix(backward.result().key()),
                matrix(backward.result().value()),
                backward.continuesQuery(),
                backward.continuesKeys(),
                isDeterministic());
        yield () -> stream.attendGradient(work, gradient);
      }
      case Step.Merge merge -> {
        var merged =
            new AttentionMerge(
                merge.parts().stream().map(this::part).toList(), part(merge.result()));
        yield () -> stream.merge(work, merged);
      }
      case Step.Zero zero -> {
        var memory = bytes(zero.target());
        yield () -> stream.zero(work, memory);
      }
      case Step.Prepare prepare -> {
        var operand = resources.operand(prepare.weight());
        yield () -> stream.prepare(work, operand);
      }
      case Step.LibraryCall call -> () -> resources.call(call, stream, work);
      case Step.Signal signal ->
          correspondence.isPresent()
                  && correspondence.get().crossed().crossing().isFar(rank, signal.to())
              ? () -> {}
              : () -> raise(stream, work, signal);
      case Step.Wait wait -> {
        int slot = slot(wait.flag(), wait.index());
        var signals = resources.signals();
        yield () -> stream.await(work, signals, slot, wait.from());
      }
      case Step.Mark mark -> () -> marks[mark.number()] = stream.mark();
      case Step.After after -> () -> stream.await(work, marks[after.mark()]);
    };
  }

  private void raise(Stream stream, Work work, Step.Signal signal) {
    stream.raise(work, resources.signals(), signal.to(), slot(signal.flag(), signal.index()));
  }

  private Matrix part(Step.Reduce reduce, Region region) {
    return correspondence.map(each -> each.part(reduce, region)).orElseGet(() -> matrix(region));
  }

  /// Names a step in spans. Only profiles need the names, which take the steps of all ranks.
  private synchronized String shortName(Step step) {
    var names = labels;
    if (names == null) {
      names = Labels.of(schedule, rank);
      labels = names;
    }
    return names.of(step);
  }

  /// Names a step that a rank has waited for, in messages.
  private static String text(Step step) {
    return switch (step) {
      case Step.Wait wait -> "signal %s from rank %d".formatted(wait.word(), wait.from());
      case Step.After after -> "mark " + after.mark();
      default -> step.text();
    };
  }

  private Runnable copy(Step.Copy copy, Stream stream, Work work) {
    var moves =
        correspondence
            .map(each -> each.crossed().crossing().near(rank, copy))
            .orElseGet(copy::moves);
    var copies =
        moves.stream().map(move -> new Copy(work, transfer(move), move.isLocal())).toList();
    if (copy.lane().transport() == Transport.ONE_KERNEL
        || (copies.size() > 1 && copies.stream().noneMatch(Copy::local))) {
      return () -> stream.copyAll(work, copies);
    }
    var each = new ArrayList<Runnable>();
    for (var one : copies) {
      each.add(
          one.local()
              ? () -> stream.copyLocal(work, one.transfer())
              : () -> stream.copy(work, one.transfer()));
    }
    return each.size() == 1 ? each.getFirst() : () -> each.forEach(Runnable::run);
  }

  /// Returns the transfer of a move. Rows of a transposed buffer are strided, and so are some
  /// columns of others.
  private Transfer transfer(Step.Move move) {
    boolean strided =
        move.from().buffer().transposed()
            || !move.from().hasAllColumns()
            || !move.to().hasAllColumns();
    return strided
        ? Transfer.of(matrix(move.from()), matrix(move.to()))
        : Transfer.of(bytes(move.from()), bytes(move.to()));
  }

  private Runnable gemm(Step.Gemm gemm, Stream stream, Work work) {
    var operand = resources.operand(gemm.weight());
    var gemms =
        TileRun.of(gemm.tiles()).stream()
            .map(
                run ->
                    new Gemm(
                        matrix(run.first().input()),
                        operand,
                        matrix(run.first().output()),
                        epilogue(gemm.finish(), run.first().output()),
                        run.count(),
                        Math.toIntExact(run.inputStep()),
                        Math.toIntExact(run.outputStep())))
            .toList();
    return gemms.size() == 1
        ? () -> stream.gemm(work, gemms.getFirst())
        : () -> gemms.forEach(each -> stream.gemm(work, each));
  }

  private Epilogue epilogue(Finish finish, Region output) {
    Function<Buffer, MemorySegment> own = buffer -> resources.memory(buffer, output.rank());
    return new Epilogue(
        finish.scaled() ? scales.product() : 1,
        finish.accumulate(),
        finish.bias().map(own),
        finish.preActivation().map(buffer -> matrix(buffer.on(output.rank(), output.slice()))),
        finish.amax().map(own),
        finish.rescaled() ? scales.stored() : 1);
  }

  private AttentionBlock block(Step.Attend attend) {
    return new AttentionBlock(
        attend.spec(),
        matrix(attend.query()),
        attend.queries(),
        matrix(attend.key()),
        matrix(attend.value()),
        attend.keys(),
        part(attend.continued() ? attend.result() : attend.written()),
        attend.continued(),
        attend.continued() ? attend.finished().map(this::matrix) : Optional.empty());
  }

  private AttentionBlock.Part part(Step.Partial partial) {
    return new AttentionBlock.Part(matrix(partial.output()), matrix(partial.lse()));
  }

  private Matrix matrix(Region region) {
    return matrix(region, resources.memory(region.buffer(), region.rank()));
  }

  /// Returns a region as a matrix; `memory` holds its whole buffer.
  public static Matrix matrix(Region region, MemorySegment memory) {
    var buffer = region.buffer();
    int rows = Math.toIntExact(region.rows());
    int columns = Math.toIntExact(region.columns());
    if (buffer.transposed()) {
      int all = Math.toIntExact(buffer.rows(region.rank()));
      long skipped = region.column() * all * buffer.dtype().bytes();
      return Matrix.transposed(memory.asSlice(skipped), buffer.dtype(), all, columns)
          .rows(Math.toIntExact(region.row()), rows);
    }
    // Up to the end of the memory, because further tiles of a multiplication follow.
    long skipped = region.row() * rowBytes(region) + region.column() * buffer.dtype().bytes();
    return new Matrix(
        memory.asSlice(rows == 0 ? 0 : skipped),
        buffer.dtype(),
        rows,
        columns,
        Math.toIntExact(buffer.columns(region.rank())),
        false);
  }

  private MemorySegment bytes(Region region) {
    return bytes(region, resources.memory(region.buffer(), region.rank()));
  }

  /// Returns the bytes of a region; `memory` holds its whole buffer.
  public static MemorySegment bytes(Region region, MemorySegment memory) {
    if (!region.hasAllColumns()
        || (region.buffer().transposed() && region.rows() != region.buffer().rows(region.rank()))) {
      throw new IllegalStateException("not in one piece: " + region);
    }
    return memory.asSlice(region.row() * rowBytes(region), region.bytes());
  }

  private static long rowBytes(Region region) {
    return region.buffer().columns(region.rank()) * region.buffer().dtype().bytes();
  }

  private int slot(Flag flag, int index) {
    var first = Optional.ofNullable(slots.get(flag.name()));
    return first.orElseThrow(() -> new IllegalStateException("no flag " + flag)) + index;
  }
}
