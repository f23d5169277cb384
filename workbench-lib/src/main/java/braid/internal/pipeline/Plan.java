package braid.internal.pipeline;

import braid.internal.backend.Backend;
import braid.internal.backend.Event;
import braid.internal.backend.Executable;
import braid.internal.backend.Signals;
import braid.internal.backend.Stream;
import braid.internal.rank.Closing;
import braid.internal.resource.SymmetricMemory;
import braid.internal.resource.SymmetricSource;
import braid.internal.run.Executor;
import braid.internal.work.Epilogue;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.internal.work.Work;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Place;
import braid.model.Scales;
import braid.schedule.Buffer;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Neighbors;
import braid.schedule.Part;
import braid.schedule.Port;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A schedule set up on this rank to be run again and again: its memory, its streams and its words.
/// It only gives out work; its caller waits.
public final class Plan implements AutoCloseable, Executor.Resources {
  /// Large enough that OpenBLAS takes the path it takes for real work, and sets up for it.
  private static final int WARM_UP_SIZE = 64;

  private final Backend backend;
  private final Place place;
  private final GemmSpec spec;
  private final Tuning tuning;
  private final Schedule schedule;
  private final Deque<AutoCloseable> made = new ArrayDeque<>();
  private final Map<String, SymmetricMemory> shared = new HashMap<>();
  private final Map<String, MemorySegment> own = new HashMap<>();
  private final Map<String, Operand> operands = new HashMap<>();
  private final Map<Lane, Stream> lanes = new LinkedHashMap<>();

  /// All streams, communication first.
  private List<Stream> streams = List.of();

  private final Map<Part, View> views = new EnumMap<>(Part.class);
  private final Map<Part, CallerMemory> bound;
  private @Nullable Signals signals;
  private @Nullable Executable compiled;
  private Scales scales = Scales.NONE;
  private boolean spoiled;
  private int step;

  private Plan(
      Backend backend, Place place, GemmSpec spec, Tuning tuning, Map<Part, CallerMemory> bound) {
    this.backend = backend;
    this.place = place;
    this.spec = spec;
    this.tuning = tuning;
    this.bound = Map.copyOf(bound);
    var planned = tuning.schedule(spec, place.size());
    this.schedule = planned.staged(staged(planned, bound));
  }

  /// Sets up that problem and tuning. All ranks do it together; what fails leaves nothing behind.
  ///
  /// @param ranks the members' ranks in the world
  /// @param bound parts that lie in memory of the caller
  public static Plan of(
      Backend backend,
      Place place,
      List<Integer> ranks,
      GemmSpec spec,
      Tuning tuning,
      Map<Part, CallerMemory> bound,
      SymmetricSource source) {
    var plan = new Plan(backend, place, spec, tuning, bound);
    try {
      plan.setUp(ranks, source);
      return plan;
    } catch (RuntimeException | Error e) {
      plan.spoil();
      Closing.after(e, plan);
      throw e;
    }
  }

  /// Parts whose buffers cannot be the caller's: peers reach them, or they are rows of a larger
  /// one.
  private static Set<Part> staged(Schedule schedule, Map<Part, CallerMemory> bound) {
    var staged = EnumSet.noneOf(Part.class);
    bound.forEach(
        (part, given) -> {
          for (var region : schedule.port(part.port()).orElseThrow().regions()) {
            var buffer = region.buffer();
            if (region.rows() != buffer.rows(region.rank())
                || (buffer.symmetric() && given.symmetric().isEmpty())) {
              staged.add(part);
            }
          }
        });
    return staged;
  }

  private void setUp(List<Integer> ranks, SymmetricSource source) {
    var given = new HashMap<String, CallerMemory>();
    bound.forEach(
        (part, memory) -> {
          var port = schedule.port(part.port()).orElseThrow();
          given.put(port.on(place.rank()).buffer().name(), memory);
        });
    for (var buffer : schedule.buffers()) {
      var callers = given.get(buffer.name());
      if (callers != null) {
        callers.symmetric().ifPresent(all -> shared.put(buffer.name(), all));
        own.put(buffer.name(), callers.local().asSlice(0, buffer.bytes(place.rank())));
      } else if (buffer.symmetric()) {
        shared.put(buffer.name(), symmetric(source, buffer.name(), buffer.mostBytes()));
      } else {
        own.put(buffer.name(), keep(backend.allocate(buffer.bytes(place.rank()))).segment());
      }
    }
    int words = Executor.words(schedule);
    signals =
        new Signals(symmetric(source, "signals", Signals.bytes(words)), ranks, place.rank(), words);
    for (var lane : schedule.lanes()) {
      lanes.put(lane, keep(backend.stream(lane)));
    }
    streams = List.copyOf(lanes.values());
    for (var port : schedule.ports()) {
      show(port);
    }
    lanes.forEach(
        (lane, stream) -> {
          if (lane.role() == Lane.Role.COMPUTE) {
            warmUp(stream);
          }
        });
  }

  private SymmetricMemory symmetric(SymmetricSource source, String name, long bytes) {
    var memory = source.take("%s: %s".formatted(this, name), bytes);
    var _ = keep(() -> end(memory));
    return memory;
  }

  private void end(SymmetricMemory memory) {
    if (spoiled) {
      memory.spoil();
    } else {
      memory.close();
    }
  }

  private <T extends AutoCloseable> T keep(T resource) {
    made.push(resource);
    return resource;
  }

  private void show(Port port) {
    for (var part : Part.values()) {
      if (part.port().equals(port.name())) {
        views.put(part, view(port.on(place.rank()), part.isLine()));
      }
    }
  }

  private View view(Region region, boolean line) {
    var memory = memory(region.buffer(), region.rank());
    return line
        ? View.line(Executor.bytes(region, memory), region.buffer().dtype())
        : View.of(Executor.matrix(region, memory));
  }

  /// The first multiplication of a process loads a library, the first of a stream takes buffers:
  /// that is no iteration's time.
  private void warmUp(Stream stream) {
    int size = WARM_UP_SIZE;
    long bytes = (long) size * size * Float.BYTES;
    try (var memory = backend.allocate(3 * bytes)) {
      var a = square(memory.segment());
      var c = square(memory.segment().asSlice(2 * bytes));
      try (var b = backend.operand(square(memory.segment().asSlice(bytes, bytes)), DType.FP32)) {
        stream.gemm(Work.of(() -> "the warm-up of " + this), new Gemm(a, b, c, Epilogue.NONE));
        stream.synchronize(() -> "the warm-up on " + stream.name());
      }
    }
  }

  private static Matrix square(MemorySegment memory) {
    return Matrix.of(memory, DType.FP32, WARM_UP_SIZE, WARM_UP_SIZE);
  }

  @Override
  public MemorySegment memory(Buffer buffer, int rank) {
    var all = shared.get(buffer.name());
    if (all != null) {
      return all.on(rank);
    }
    var mine = own.get(buffer.name());
    if (mine == null || rank != place.rank()) {
      throw new IllegalStateException("%s on rank %d is out of reach".formatted(buffer, rank));
    }
    return mine;
  }

  @Override
  public Map<Lane, Stream> lanes() {
    return lanes;
  }

  @Override
  public Signals signals() {
    var words = signals;
    if (words == null) {
      throw new IllegalStateException("words are not set up yet");
    }
    return words;
  }

  @Override
  public Operand operand(Region weight) {
    return operands.computeIfAbsent(
        weight.toString(),
        _ ->
            keep(
                backend.operand(
                    Executor.matrix(weight, memory(weight.buffer(), weight.rank())),
                    spec.dtype())));
  }

  @Override
  public void call(Step.LibraryCall call, Stream on, Work work) {
    throw new IllegalStateException("a pipeline makes no library calls: " + work);
  }

  /// A rank's output, where the schedule puts outputs into symmetric memory.
  public Optional<View> outputOn(int rank) {
    return schedule
        .port(Part.OUTPUT.port())
        .map(port -> port.on(rank))
        .filter(region -> region.buffer().symmetric())
        .map(region -> view(region, false));
  }

  /// This rank's numbers of that part; none where the problem has none.
  public Optional<View> view(Part part) {
    return Optional.ofNullable(views.get(part));
  }

  /// Whether that part lies in memory of the caller.
  public boolean isBound(Part part) {
    return bound.containsKey(part);
  }

  /// All of them.
  public Map<Part, View> views() {
    return views;
  }

  /// The matrix of that part.
  Matrix matrix(Part part) {
    var region = schedule.port(part.port()).orElseThrow().on(place.rank());
    return Executor.matrix(region, memory(region.buffer(), region.rank()));
  }

  /// This rank's memory that no caller writes and every iteration does, and results: all of it but
  /// the given parts.
  public List<View> results() {
    return schedule.buffers().stream()
        .flatMap(buffer -> notGiven(buffer).stream())
        .map(region -> view(region, false))
        .toList();
  }

  private List<Region> notGiven(Buffer buffer) {
    int rank = place.rank();
    var given =
        schedule.ports().stream()
            .filter(port -> port.given() && port.on(rank).buffer().equals(buffer))
            .map(port -> port.on(rank).slice())
            .sorted(Comparator.comparingLong(Slice::start))
            .toList();
    var left = new ArrayList<Region>();
    long from = 0;
    for (var slice : given) {
      left.add(buffer.on(rank, new Slice(from, slice.start() - from)));
      from = slice.end();
    }
    left.add(buffer.on(rank, new Slice(from, buffer.rows(rank) - from)));
    return left.stream().filter(region -> !region.isEmpty()).toList();
  }

  public GemmSpec spec() {
    return spec;
  }

  public Tuning tuning() {
    return tuning;
  }

  public Schedule schedule() {
    return schedule;
  }

  public Place place() {
    return place;
  }

  Backend backend() {
    return backend;
  }

  /// The ranks in the order in which their parts of that owner's sum are added.
  List<Integer> addingOrder(int owner) {
    return ring()
        .map(how -> new Neighbors(owner, place.size(), how.order()).ringAddingOrder())
        .orElseGet(() -> IntStream.range(0, place.size()).boxed().toList());
  }

  /// Whether the sum is rounded at every hop. A schedule that was not planned is held to one
  /// rounding.
  boolean isRing() {
    return ring().isPresent();
  }

  /// The tuning that a ring was planned by.
  private Optional<Overlap> ring() {
    return schedule.goal() instanceof Goal.Gemm goal
        ? goal.overlap().filter(how -> how.method() == Method.RING)
        : Optional.empty();
  }

  /// The largest size of the output's numbers, where it is kept.
  public Optional<MemorySegment> amax() {
    return Optional.ofNullable(own.get(Part.AMAX));
  }

  /// Takes stored numbers to mean that from the next run on.
  public void scale(Scales other) {
    if (!scales.equals(other)) {
      scales = other;
      // The compiled work has the old scales in it.
      forget();
    }
  }

  private void forget() {
    var ready = compiled;
    compiled = null;
    if (ready != null) {
      ready.close();
    }
  }

  Scales scales() {
    return scales;
  }

  /// The piece of communication or multiplication that made that row of a part, for people.
  String origin(Part part, int row) {
    return schedule.origin(part, place.rank(), row);
  }

  /// The steps of an epoch begin with 1.
  public void beginEpoch() {
    step = 0;
  }

  /// Turns to the next iteration, and readies its work where that is not ready yet. Returns whether
  /// it is recorded already.
  public boolean turn(int iteration) {
    step++;
    streams().forEach(stream -> stream.turn(iteration, step));
    if (compiled != null) {
      return tuning.replayed();
    }
    var executor = new Executor(schedule, place.rank(), this, scales, () -> "`" + this + "`");
    compiled = backend.compile(streams(), executor::layOut, tuning.replayed());
    return false;
  }

  /// Gives out the iteration that was turned to.
  public void launch() {
    ready().launch();
  }

  private Executable ready() {
    var ready = compiled;
    if (ready == null) {
      throw new IllegalStateException("launched before an iteration was turned to");
    }
    return ready;
  }

  /// How many iterations may be in flight.
  int mostInFlight() {
    return ready().mostInFlight();
  }

  /// Makes the first stream wait for all others: it comes to the end of the iteration when all of
  /// them have.
  void join() {
    if (!ready().isWhole()) {
      var first = streams().getFirst();
      for (var stream : streams().subList(1, streams().size())) {
        first.await(
            Work.of(() -> stream.waitingFor().orElse("the end of " + stream.name())),
            stream.mark());
      }
    }
  }

  /// Makes all streams wait for that point of stream `on`; of work that is whole, the first.
  void follow(Work what, Event end, Stream on) {
    var all = ready().isWhole() ? streams().subList(0, 1) : streams();
    for (var stream : all) {
      if (!stream.equals(on)) {
        stream.await(what, end);
      }
    }
  }

  /// The thing that one of the streams waits for, for messages.
  Optional<String> waitingFor() {
    return streams().stream().flatMap(stream -> stream.waitingFor().stream()).findFirst();
  }

  /// All iterations but the last `inFlight` have ended.
  void settled(int inFlight) {
    streams().forEach(stream -> stream.settled(inFlight));
  }

  /// Waits until all that was laid out is done. Communication comes first, since what it waits for
  /// is what people want to know.
  public void synchronize(Supplier<String> description) {
    streams().forEach(stream -> stream.synchronize(description));
  }

  /// All streams, communication first.
  public List<Stream> streams() {
    return streams;
  }

  /// Brings its streams to rest after a failure.
  public void rest() {
    backend.rest(streams());
  }

  /// An iteration broke off: ranks may be at different steps, and one of them may still write to
  /// the memory when another has closed it. So nobody is to use it again.
  public void spoil() {
    spoiled = true;
  }

  /// Frees everything, streams first. No rank waits for another: the peers keep their own views.
  @Override
  public void close() {
    if (spoiled) {
      var broken = streams();
      made.push(() -> backend.rest(broken));
    }
    made.push(this::forget);
    streams = List.of();
    Closing.all(made::poll);
  }

  @Override
  public String toString() {
    return "%s, %s".formatted(spec, tuning);
  }
}
