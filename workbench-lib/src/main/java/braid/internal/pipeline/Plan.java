package braid.internal.pipeline;

import braid.internal.backend.Backend;
import braid.internal.backend.Channels.Channel;
import braid.internal.backend.Event;
import braid.internal.backend.Executable;
import braid.internal.backend.Signals;
import braid.internal.backend.Stream;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryProduct;
import braid.internal.library.LibraryRequest;
import braid.internal.library.TensorPart;
import braid.internal.rank.Closing;
import braid.internal.resource.BufferRequest;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.internal.resource.SymmetricSource;
import braid.internal.run.Crossing;
import braid.internal.run.Executor;
import braid.internal.run.Link;
import braid.internal.run.WholeOperation;
import braid.internal.work.Epilogue;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.internal.work.Work;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GroupAborted;
import braid.model.Overlap;
import braid.model.Place;
import braid.model.Problem;
import braid.model.Scales;
import braid.model.Stage;
import braid.model.Transport;
import braid.schedule.Buffer;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Port;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import braid.schedule.plan.Addend;
import braid.schedule.plan.Planner;
import braid.schedule.plan.Staging;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A schedule set up on this rank for repeated runs: its memory, streams and signal words. It only
/// enqueues work; the caller waits.
public final class Plan implements Link, AutoCloseable, Executor.Resources {
  /// Large enough that OpenBLAS uses and initializes the code path of real problems.
  private static final int WARM_UP_SIZE = 64;

  private static final String SIGNALS = "signals";

  private final Backend backend;
  private final Place place;
  private final Problem problem;
  private final PlanSource source;
  private final Schedule schedule;
  private final Deque<AutoCloseable> resources = new ArrayDeque<>();
  private final Map<String, SymmetricMemory> shared = new HashMap<>();
  private final Map<String, MemorySegment> local = new HashMap<>();
  private final Map<String, Operand> operands = new HashMap<>();
  private final Map<Lane, Stream> lanes = new LinkedHashMap<>();

  /// Messages between hosts; empty if every rank has an address of all memory.
  private Optional<Crossing> crossing = Optional.empty();

  private final Map<String, MemorySegment> scratch = new HashMap<>();

  /// Streams of this rank's part in the steps of ranks of other hosts.
  private final Map<Channel, Stream> touched = new LinkedHashMap<>();

  /// All streams, communication first.
  private List<Stream> streams = List.of();

  private final Map<Part, View> views = new EnumMap<>(Part.class);
  private final Map<Part, CallerMemory> bound;
  private final Supplier<Rendezvous> rendezvous;
  private @Nullable PlanLibraries libraries;
  private @Nullable Signals signals;
  private @Nullable Executable compiled;
  private Scales scales = Scales.NONE;
  private boolean spoiled;
  private int step;

  private Plan(
      Backend backend,
      Place place,
      Problem problem,
      PlanSource source,
      Map<Part, CallerMemory> bound,
      Supplier<Rendezvous> rendezvous) {
    this.rendezvous = rendezvous;
    this.backend = backend;
    this.place = place;
    this.problem = problem;
    this.source = source;
    this.bound = Map.copyOf(bound);
    var planned = source.schedule(problem, place.size());
    this.schedule = Staging.of(planned, staged(planned, bound));
  }

  /// Sets up a problem and its schedule. All ranks call it together; a failure releases everything.
  ///
  /// @param ranks the members' ranks in the world
  /// @param bound parts in memory of the caller
  /// @param rendezvous supplies a new rendezvous at every call
  public static Plan of(
      Backend backend,
      Place place,
      List<Integer> ranks,
      Problem problem,
      PlanSource source,
      Map<Part, CallerMemory> bound,
      SymmetricSource memory,
      Supplier<Rendezvous> rendezvous) {
    var plan = new Plan(backend, place, problem, source, bound, rendezvous);
    try {
      plan.setUp(ranks, memory);
      return plan;
    } catch (RuntimeException | Error e) {
      plan.spoil(e);
      Closing.after(e, plan);
      throw e;
    }
  }

  /// Returns the bound parts that must be copied, because peers access the buffer or it is part of
  /// a larger one.
  private static Set<Part> staged(Schedule schedule, Map<Part, CallerMemory> bound) {
    var staged = EnumSet.noneOf(Part.class);
    bound.forEach(
        (part, callerMemory) -> {
          for (var region : schedule.port(part.port()).orElseThrow().regions()) {
            var buffer = region.buffer();
            if (region.rows() != buffer.rows(region.rank())
                || (buffer.symmetric() && callerMemory.symmetric().isEmpty())) {
              staged.add(part);
            }
          }
        });
    return staged;
  }

  private void setUp(List<Integer> ranks, SymmetricSource memory) {
    var transports =
        calls().map(call -> call.lane().transport()).collect(Collectors.toCollection(TreeSet::new));
    crossing =
        backend
            .separateHosts(ranks)
            .map(hosts -> new Crossing(schedule, hosts))
            .filter(each -> !each.channels().isEmpty());
    if (crossing.isPresent() && source.replayed()) {
      throw new BraidException(
          "%s: replayed iterations stay within a host but the ranks are on several; leave out replay()"
              .formatted(this));
    }
    var channels = crossing.map(Crossing::channels).orElseGet(Collections::emptySortedSet);
    if (!transports.isEmpty() || !channels.isEmpty()) {
      libraries = keep(new PlanLibraries(toString(), transports, channels, backend, rendezvous));
    }
    var callerMemory = new HashMap<String, CallerMemory>();
    bound.forEach(
        (part, callers) -> {
          var port = schedule.port(part.port()).orElseThrow();
          callerMemory.put(port.on(place.rank()).buffer().name(), callers);
        });
    int words = Executor.words(schedule);
    memory.grant(toString(), requests(callerMemory.keySet(), words), source.lessMemory());
    for (var buffer : schedule.buffers()) {
      var callers = callerMemory.get(buffer.name());
      if (callers != null) {
        callers.symmetric().ifPresent(all -> shared.put(buffer.name(), all));
        local.put(buffer.name(), callers.local().asSlice(0, buffer.bytes(place.rank())));
      } else if (buffer.symmetric()) {
        shared.put(buffer.name(), symmetric(memory, buffer.name(), buffer.mostBytes()));
      } else {
        local.put(buffer.name(), allocate(buffer));
      }
    }
    signals =
        new Signals(symmetric(memory, SIGNALS, Signals.bytes(words)), ranks, place.rank(), words);
    for (var lane : schedule.lanes()) {
      lanes.put(lane, keep(backend.stream(lane)));
    }
    crossing.ifPresent(
        each ->
            each.touching(place.rank())
                .forEach(
                    channel -> touched.put(channel, keep(backend.stream(channel.passiveLane())))));
    streams =
        java.util.stream.Stream.concat(lanes.values().stream(), touched.values().stream()).toList();
    for (var port : schedule.ports()) {
      addView(port);
    }
    lanes.forEach(
        (lane, stream) -> {
          if (lane.role() == Lane.Role.COMPUTE) {
            warmUp(stream);
          }
        });
  }

  /// Returns the memory that all ranks allocate, except the callers' own.
  private List<BufferRequest> requests(Set<String> callers, int words) {
    var requests = new ArrayList<BufferRequest>();
    for (var buffer : schedule.buffers()) {
      if (!callers.contains(buffer.name())) {
        var bytes =
            IntStream.range(0, place.size())
                .mapToObj(rank -> buffer.symmetric() ? buffer.mostBytes() : buffer.bytes(rank))
                .toList();
        requests.add(new BufferRequest(buffer.name(), buffer.symmetric(), bytes));
      }
    }
    var bytes = Collections.nCopies(place.size(), Signals.bytes(words));
    requests.add(new BufferRequest(SIGNALS, true, bytes));
    return requests;
  }

  private MemorySegment allocate(Buffer buffer) {
    try {
      return keep(backend.allocate(buffer.bytes(place.rank()))).segment();
    } catch (GroupAborted e) {
      throw e;
    } catch (RuntimeException e) {
      throw new BraidException(
          "%s: private buffer `%s`: %s".formatted(this, buffer, e.getMessage()), e);
    }
  }

  private SymmetricMemory symmetric(SymmetricSource memory, String name, long bytes) {
    var taken = memory.take("%s: %s".formatted(this, name), bytes);
    var _ = keep(() -> end(taken));
    return taken;
  }

  private void end(SymmetricMemory memory) {
    if (spoiled) {
      memory.spoil();
    } else {
      memory.close();
    }
  }

  private <T extends AutoCloseable> T keep(T resource) {
    resources.push(resource);
    return resource;
  }

  private void addView(Port port) {
    for (var part : Part.values()) {
      if (part.port().equals(port.name())) {
        views.put(part, view(port.on(place.rank()), part.isVector()));
      }
    }
  }

  private View view(Region region, boolean line) {
    var memory = memory(region.buffer(), region.rank());
    return line
        ? View.line(Executor.bytes(region, memory), region.buffer().dtype())
        : View.of(Executor.matrix(region, memory));
  }

  /// Runs one multiplication, so that no iteration includes loading the library or allocating the
  /// stream's buffers.
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
    var mine = local.get(buffer.name());
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
  public Optional<Executor.Crossed> crossed() {
    return crossing.map(
        each ->
            new Executor.Crossed(
                each, Objects.requireNonNull(libraries).channels(), touched, this::scratch));
  }

  private MemorySegment scratch(String name, long bytes) {
    return scratch.computeIfAbsent(name, _ -> keep(backend.allocate(bytes)).segment());
  }

  @Override
  public Operand operand(Region weight) {
    return operands.computeIfAbsent(
        weight.toString(),
        _ ->
            keep(
                backend.operand(
                    Executor.matrix(weight, memory(weight.buffer(), weight.rank())),
                    problem.dtype())));
  }

  /// Returns this rank's library calls, in order.
  private java.util.stream.Stream<Step.LibraryCall> calls() {
    return schedule.steps(place.rank()).stream()
        .filter(Step.LibraryCall.class::isInstance)
        .map(Step.LibraryCall.class::cast);
  }

  @Override
  public void call(Step.LibraryCall call, Stream stream, Work work) {
    var request = request(call);
    stream.library(
        work,
        Stage.COPY,
        request.linkBytes(place.size()),
        0,
        Objects.requireNonNull(libraries).of(call.lane().transport()).call(request));
  }

  @Override
  public void call(WholeOperation operation, Stream stream, Work work) {
    var call = operation.call();
    var gemm = operation.gemm();
    var product =
        new LibraryProduct(
            call.collective(),
            matrix(operation.input()),
            matrix(gemm.weight()),
            matrix(operation.output()),
            call.lane().workers());
    var tile = gemm.tiles().getFirst();
    stream.library(
        work,
        Stage.GEMM,
        request(call).linkBytes(place.size()),
        2 * tile.input().rows() * tile.input().columns() * tile.output().columns(),
        Objects.requireNonNull(libraries).of(call.lane().transport()).call(product));
  }

  private Matrix matrix(Region region) {
    return Executor.matrix(region, memory(region.buffer(), region.rank()));
  }

  private LibraryRequest request(Step.LibraryCall call) {
    return new LibraryRequest(call.collective(), part(call.x()), part(call.y()), call.root());
  }

  private TensorPart part(Region region) {
    var buffer = region.buffer();
    return new TensorPart(
        buffer.dtype(),
        Executor.bytes(region, memory(buffer, region.rank())),
        Optional.ofNullable(shared.get(buffer.name())).flatMap(SymmetricMemory::attachment));
  }

  /// Returns a rank's output, if the schedule keeps outputs in symmetric memory.
  public Optional<View> outputOn(int rank) {
    return schedule
        .port(Part.OUTPUT.port())
        .map(port -> port.on(rank))
        .filter(region -> region.buffer().symmetric())
        .map(region -> view(region, false));
  }

  /// Returns this rank's view of a part; empty if the problem does not have it.
  public Optional<View> view(Part part) {
    return Optional.ofNullable(views.get(part));
  }

  /// Returns whether a part is in memory of the caller.
  public boolean isBound(Part part) {
    return bound.containsKey(part);
  }

  /// Returns the memory of all ranks that holds a part, if ranks can access each other's.
  public Optional<SymmetricMemory> symmetric(Part part) {
    return schedule
        .port(part.port())
        .map(port -> port.on(place.rank()).buffer())
        .flatMap(buffer -> Optional.ofNullable(shared.get(buffer.name())));
  }

  /// Returns all views.
  public Map<Part, View> views() {
    return views;
  }

  /// Returns the matrix of a part.
  Matrix matrix(Part part) {
    return matrix(schedule.port(part.port()).orElseThrow().on(place.rank()));
  }

  /// Returns this rank's memory that iterations write: all buffers except the given parts.
  public List<View> results() {
    return schedule.buffers().stream()
        .flatMap(buffer -> computed(buffer).stream())
        .map(region -> view(region, false))
        .toList();
  }

  private List<Region> computed(Buffer buffer) {
    int rank = place.rank();
    var given =
        schedule.ports().stream()
            .filter(port -> port.given() && port.on(rank).buffer().equals(buffer))
            .map(port -> port.on(rank).slice())
            .sorted(Comparator.comparingLong(Slice::start))
            .toList();
    var regions = new ArrayList<Region>();
    long from = 0;
    for (var slice : given) {
      regions.add(buffer.on(rank, new Slice(from, slice.start() - from)));
      from = slice.end();
    }
    regions.add(buffer.on(rank, new Slice(from, buffer.rows(rank) - from)));
    return regions.stream().filter(region -> !region.isEmpty()).toList();
  }

  public Problem problem() {
    return problem;
  }

  public PlanSource source() {
    return source;
  }

  public Schedule schedule() {
    return schedule;
  }

  public Place place() {
    return place;
  }

  public Backend backend() {
    return backend;
  }

  /// Returns the parts of an owner's sum as the method adds them. A user's own schedule is expected
  /// to add in the order of the ranks and to round once.
  Addend.Sum sum(int owner) {
    return schedule.goal() instanceof Goal.Solution(var _, var planned)
            && planned.orElse(null) instanceof Overlap overlap
        ? Addend.of(overlap, owner, place.size())
        : Addend.inOrder(place.size());
  }

  @Override
  public boolean waitsInLibrary() {
    return libraries != null;
  }

  /// Returns a library that gathers the ranks' memory for the reference, if ranks have no address
  /// of that of others. Collective: all ranks call it together.
  Optional<LibraryCollectives> gathering() {
    return backend
        .separateHosts(signals().ranks())
        .map(_ -> backend.library(Transport.NCCL_KERNELS, rendezvous));
  }

  /// Returns whether a library adds, in an order that only it knows.
  boolean libraryAdds() {
    return calls().anyMatch(call -> call.collective().adds());
  }

  /// Returns whether a library multiplies too.
  boolean libraryMultiplies() {
    return calls().anyMatch(call -> call.lane().transport().multiplies());
  }

  /// Returns the largest magnitude of the output, if it is tracked.
  public Optional<MemorySegment> amax() {
    return Optional.ofNullable(local.get(Part.AMAX));
  }

  /// Sets the scales, effective from the next run on.
  public void scale(Scales other) {
    if (!scales.equals(other)) {
      scales = other;
      // The compiled work contains the old scales.
      discardCompiled();
    }
  }

  private void discardCompiled() {
    var ready = compiled;
    compiled = null;
    if (ready != null) {
      ready.close();
    }
  }

  Scales scales() {
    return scales;
  }

  /// Names the step that produced a row of a part, for messages.
  String origin(Part part, int row) {
    return Planner.origin(schedule, part, place.rank(), row);
  }

  @Override
  public void beginEpoch() {
    step = 0;
    var used = libraries;
    if (used != null && used.disconnect()) {
      // Recorded calls are by communicators of the last epoch.
      discardCompiled();
    }
  }

  /// Advances to the next iteration, and compiles its work if that was not done yet. Returns
  /// whether the iteration is replayed from a recording.
  @Override
  public boolean turn(int iteration) {
    boolean recorded = source.replayed();
    var used = libraries;
    if (used != null && used.isNew()) {
      used.connect(
          calls()
              .collect(
                  Collectors.groupingBy(
                      call -> call.lane().transport(),
                      TreeMap::new,
                      Collectors.mapping(this::request, Collectors.toList()))));
      recorded = false;
    } else if (used != null && used.endConnecting() && recorded) {
      synchronize(() -> "the first iteration of `" + this + "`");
      discardCompiled();
    }
    step++;
    streams().forEach(stream -> stream.turn(iteration, step));
    if (compiled != null) {
      return recorded;
    }
    var executor = new Executor(schedule, place.rank(), this, scales, () -> "`" + this + "`");
    compiled = backend.compile(streams(), executor::layOut, recorded);
    return false;
  }

  @Override
  public Stream first() {
    return streams().getFirst();
  }

  @Override
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

  @Override
  public int maxInFlight() {
    return ready().maxInFlight();
  }

  @Override
  public void join() {
    if (!ready().isSingleOperation()) {
      var first = first();
      for (var stream : streams().subList(1, streams().size())) {
        first.await(
            Work.of(() -> stream.waitingFor().orElse("the end of " + stream.name())),
            stream.mark());
      }
    }
  }

  /// Makes all streams wait for an event of stream `lane`. If a launch is a single operation, only
  /// the first stream waits.
  @Override
  public void follow(Work work, Event end, Stream lane) {
    var all = ready().isSingleOperation() ? streams().subList(0, 1) : streams();
    for (var stream : all) {
      if (!stream.equals(lane)) {
        stream.await(work, end);
      }
    }
  }

  @Override
  public Optional<String> waitingFor() {
    return streams().stream().flatMap(stream -> stream.waitingFor().stream()).findFirst();
  }

  @Override
  public void settled(int inFlight) {
    streams().forEach(stream -> stream.settled(inFlight));
  }

  /// Waits until all enqueued work is done. Communication comes first, so that a failure names its
  /// wait.
  @Override
  public void synchronize(Supplier<String> description) {
    streams().forEach(stream -> stream.synchronize(description));
  }

  @Override
  public List<Stream> streams() {
    return streams;
  }

  @Override
  public void quiesce() {
    abortLibraries();
    backend.quiesce(streams());
  }

  private void abortLibraries() {
    var used = libraries;
    if (used != null) {
      used.abort();
    }
  }

  /// Marks the memory as not reusable after a failed iteration: ranks may be at different steps,
  /// and one may still write to memory that another has closed.
  @Override
  public void spoil(Throwable cause) {
    spoiled = true;
  }

  /// Frees all resources, streams first, without waiting for other ranks: the peers keep their own
  /// mappings.
  @Override
  public void close() {
    if (spoiled) {
      var broken = streams();
      resources.push(() -> backend.quiesce(broken));
      resources.push(this::abortLibraries);
    }
    resources.push(this::discardCompiled);
    streams = List.of();
    Closing.all(resources::poll);
  }

  @Override
  public String toString() {
    return "%s, %s".formatted(problem, source);
  }
}
