package braid.internal.run;

import braid.internal.backend.Copy;
import braid.internal.backend.Event;
import braid.internal.backend.Signals;
import braid.internal.backend.Stream;
import braid.internal.work.Epilogue;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.internal.work.Reduction;
import braid.internal.work.Transfer;
import braid.internal.work.Work;
import braid.model.Scales;
import braid.schedule.Buffer;
import braid.schedule.Finish;
import braid.schedule.Flag;
import braid.schedule.Lane;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;

/// One rank's part of a schedule, ready to be given to its streams: regions have become memory,
/// lanes streams and words slots. Laying it out again costs a call for each step.
public final class Executor {
  /// The memory and streams that a schedule's names stand for on this rank.
  public interface Resources {
    /// A buffer as this rank reaches it on `rank`.
    MemorySegment memory(Buffer buffer, int rank);

    /// The streams of all lanes.
    Map<Lane, Stream> lanes();

    Signals signals();

    /// The prepared form of a weight.
    Operand operand(Region weight);

    /// Puts a library's collective on a stream.
    void call(Step.LibraryCall call, Stream on, Work work);
  }

  private final Resources resources;
  private final Supplier<String> what;
  private final Scales scales;
  private final Map<String, Integer> slots = new HashMap<>();
  private final List<Runnable> steps = new ArrayList<>();
  private Event[] marks = {};

  /// @param scales of [Finish#scaled] and [Finish#rescaled]
  /// @param what is executed, for messages
  public Executor(
      Schedule schedule, int rank, Resources resources, Scales scales, Supplier<String> what) {
    this.resources = resources;
    this.scales = scales;
    this.what = what;
    int slot = 0;
    for (var flag : schedule.flags()) {
      slots.put(flag.name(), slot);
      slot += flag.words();
    }
    int count = 0;
    for (var step : schedule.steps(rank)) {
      steps.add(ready(step));
      count += step instanceof Step.Mark ? 1 : 0;
    }
    this.marks = new Event[count];
  }

  /// Words that every rank needs for a schedule's flags.
  public static int words(Schedule schedule) {
    return schedule.flags().stream().mapToInt(Flag::words).sum();
  }

  /// Gives all steps to their streams.
  public void layOut() {
    for (var step : steps) {
      step.run();
    }
  }

  private Runnable ready(Step step) {
    var stream = Objects.requireNonNull(resources.lanes().get(step.lane()));
    var work = new Work(step.chunk(), () -> text(step) + " of " + what.get());
    return switch (step) {
      case Step.Copy copy -> copy(copy, stream, work);
      case Step.Gemm gemm -> gemm(gemm, stream, work);
      case Step.Reduce reduce -> {
        var reduction =
            new Reduction(
                reduce.parts().stream().map(this::matrix).toList(),
                matrix(reduce.output()),
                epilogue(reduce.finish(), reduce.output()));
        yield () -> stream.reduce(work, reduction);
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
      case Step.Signal signal -> {
        int slot = slot(signal.flag(), signal.index());
        var signals = resources.signals();
        yield () -> stream.raise(work, signals, signal.to(), slot);
      }
      case Step.Wait wait -> {
        int slot = slot(wait.flag(), wait.index());
        var signals = resources.signals();
        yield () -> stream.await(work, signals, slot, wait.from());
      }
      case Step.Mark mark -> () -> marks[mark.number()] = stream.mark();
      case Step.After after -> () -> stream.await(work, marks[after.mark()]);
    };
  }

  /// The words of messages, where a rank has waited for a step's end.
  private static String text(Step step) {
    return switch (step) {
      case Step.Wait wait -> "signal %s from rank %d".formatted(wait.word(), wait.from());
      case Step.After after -> "mark " + after.mark();
      default -> step.text();
    };
  }

  private Runnable copy(Step.Copy copy, Stream stream, Work work) {
    var copies = copy.moves().stream().map(move -> new Copy(work, transfer(move))).toList();
    if (copies.size() > 1 && copy.moves().stream().noneMatch(Step.Move::isLocal)) {
      return () -> stream.copyAll(work, copies);
    }
    var each = new ArrayList<Runnable>();
    for (int i = 0; i < copies.size(); i++) {
      var one = copies.get(i).transfer();
      each.add(
          copy.moves().get(i).isLocal()
              ? () -> stream.copyLocal(work, one)
              : () -> stream.copy(work, one));
    }
    return each.size() == 1 ? each.getFirst() : () -> each.forEach(Runnable::run);
  }

  /// Rows of what is stored by columns are columns of it, and begin a pitch apart.
  private Transfer transfer(Step.Move move) {
    return move.from().buffer().transposed()
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
                        Math.toIntExact(run.step())))
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

  private Matrix matrix(Region region) {
    return matrix(region, resources.memory(region.buffer(), region.rank()));
  }

  /// Rows of a buffer, where all of it lies in that memory.
  public static Matrix matrix(Region region, MemorySegment memory) {
    var buffer = region.buffer();
    int rows = Math.toIntExact(region.rows());
    int columns = Math.toIntExact(region.columns());
    if (buffer.transposed()) {
      int all = Math.toIntExact(buffer.rows(region.rank()));
      return Matrix.transposed(memory, buffer.dtype(), all, columns)
          .rows(Math.toIntExact(region.row()), rows);
    }
    // To the end of the memory: further tiles of a multiplication follow.
    return Matrix.of(
        memory.asSlice(region.row() * rowBytes(region)), buffer.dtype(), rows, columns);
  }

  private MemorySegment bytes(Region region) {
    return bytes(region, resources.memory(region.buffer(), region.rank()));
  }

  /// The bytes of a region, where all of its buffer lies in that memory.
  public static MemorySegment bytes(Region region, MemorySegment memory) {
    if (region.buffer().transposed() && region.rows() != region.buffer().rows(region.rank())) {
      throw new IllegalStateException("rows stored by columns are not in one piece: " + region);
    }
    return memory.asSlice(region.row() * rowBytes(region), region.bytes());
  }

  private static long rowBytes(Region region) {
    return region.columns() * region.buffer().dtype().bytes();
  }

  private int slot(Flag flag, int index) {
    var first = Optional.ofNullable(slots.get(flag.name()));
    return first.orElseThrow(() -> new IllegalStateException("no flag " + flag)) + index;
  }
}
