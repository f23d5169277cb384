package braid.internal.collective;

import braid.internal.backend.Channels.Channel;
import braid.internal.backend.Executable;
import braid.internal.backend.Stream;
import braid.internal.collective.Messages.Refusal;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryCollectives.Precondition;
import braid.internal.memory.Call;
import braid.internal.rank.Closing;
import braid.internal.rank.Need;
import braid.internal.rank.SingleCaller;
import braid.internal.resource.PrivateMemory;
import braid.internal.run.Crossing;
import braid.internal.run.Executor;
import braid.internal.run.Link;
import braid.internal.work.Work;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.Scales;
import braid.model.Transport;
import braid.natives.profiling.NvtxRange;
import braid.schedule.Lane;
import braid.schedule.Schedule;
import braid.schedule.plan.CollectivePlanner;
import braid.schedule.plan.CollectiveSpec;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Runs the collectives and messages of this rank on a group, in order. The ranks set it up once.
/// After that a collective needs no rendezvous, only signals between ranks that read from each
/// other.
public final class CollectiveEngine implements AutoCloseable {
  private static final String SET_UP = "set up collectives";
  private static final String NONE = "";

  /// More calls than a program repeats; beyond that number all are prepared again.
  private static final int MOST_PREPARED = 256;

  private final CollectiveGroup group;

  /// Thread in a call: ranks number their collectives, so calls need an order.
  private final SingleCaller caller = new SingleCaller();

  private final Map<CollectiveRoute, Map<Lane, Stream>> streams = new HashMap<>();

  /// Schedules by everything that they depend on.
  private final Map<CollectiveSpec, Schedule> schedules = new HashMap<>();

  private final Map<CollectiveCall, Prepared> prepared = new ConcurrentHashMap<>();

  private final Map<Transport, LibraryCollectives> libraries = new EnumMap<>(Transport.class);

  /// Messages between hosts, by the schedule that has them.
  private final Map<Schedule, Executor.Crossed> crossed = new HashMap<>();

  private final Map<String, PrivateMemory> scratch = new HashMap<>();

  /// Messages of this rank to itself that it has not received, in order.
  private final Deque<SelfMessage> selfMessages = new ConcurrentLinkedDeque<>();

  /// Memory in which this rank computes sums.
  private @Nullable PrivateMemory inbox;

  /// The stream on which the latest collective of a chain ends; null if nothing runs.
  private @Nullable Stream latest;

  private @Nullable CollectiveState state;
  private @Nullable Throwable failure;

  /// The round in which all ranks last agreed that they share the same state.
  private int agreedRound;

  private int epoch;
  private int step;
  private int iteration;

  public CollectiveEngine(CollectiveGroup group) {
    this.group = group;
  }

  /// Ensures that all ranks share the same state. They meet at their first call, and again after a
  /// failure, which may have left only some of them with it.
  public void setUp() {
    var _ =
        inTurn(
            () -> SET_UP,
            () -> {
              if (state == null || failure != null || agreedRound != round()) {
                agree();
              }
              return Optional.empty();
            });
  }

  private void agree() {
    var names =
        meet(SET_UP, usable().map(CollectiveState::name).orElse(NONE)).stream().distinct().toList();
    if (names.size() > 1 || names.contains(NONE)) {
      free();
      state = CollectiveState.of(group, group.rendezvous().get());
      begin(epoch);
    }
    agreedRound = round();
  }

  private int round() {
    return group.calls().round();
  }

  private List<String> meet(String label, String value) {
    return group
        .calls()
        .meet(Call.of(label), () -> group.rendezvous().get().exchange(label, value));
  }

  private Optional<CollectiveState> usable() {
    return failure == null ? Optional.ofNullable(state) : Optional.empty();
  }

  /// A collective with its tensors, cached for equal calls.
  final class Prepared {
    private final Call groupCall;
    private final Need need;
    private final NvtxRange range;
    private @Nullable Executable compiled;

    Prepared(Call groupCall, boolean needsAll) {
      this.groupCall = groupCall;
      this.need =
          new Need(
              () -> "in " + in(groupCall.name()), false, group.scope(), "", () -> absent(needsAll));
      this.range = NvtxRange.named(() -> "braid " + groupCall);
    }
  }

  /// Runs a collective until it has ended on this rank. All ranks call it together.
  ///
  /// @param needsAll true if this rank waits for every other rank
  /// @param groupCall must be equal on all ranks; evaluated once
  public void make(CollectiveCall call, boolean needsAll, Supplier<Call> groupCall) {
    if (agreedRound != round() && state != null) {
      setUp();
    }
    var entry = prepared.computeIfAbsent(call, _ -> new Prepared(groupCall.get(), needsAll));
    var _ =
        exclusively(
            entry.groupCall::name,
            entry.range::open,
            state -> {
              group.calls().enter(entry.groupCall);
              Supplier<String> label = () -> in(entry.groupCall.name());
              group
                  .waits()
                  .calling(
                      entry.need,
                      () ->
                          enqueued(entry, state, call, label, iteration)
                              .forEach(stream -> stream.synchronize(label)));
              latest = null;
              keepFew(label);
              return Optional.empty();
            });
  }

  /// Returns a collective that a chain launches, without waiting for its end; see [#make].
  public Link link(CollectiveCall call, boolean needsAll, Call groupCall) {
    return new LaunchedCollective(
        this, call, () -> new Prepared(groupCall, needsAll), () -> in(groupCall.name()));
  }

  /// Begins an iteration of a chain on the streams of a route. Meets the other ranks if they may
  /// not share the same state, and refuses work after a failure.
  void turn(CollectiveRoute route, Supplier<String> label, int ofIteration) {
    if (agreedRound != round() && state != null) {
      setUp();
    }
    var _ = inTurn(label, () -> usable().orElseThrow(() -> unusable(label.get())));
    streams(route).forEach(stream -> stream.turn(ofIteration, step));
  }

  /// Enqueues a collective of a chain, and joins its streams.
  void launch(
      CollectiveCall call, Supplier<Prepared> maker, Supplier<String> label, int ofIteration) {
    var _ =
        inTurn(
            label,
            () -> {
              var state = usable().orElseThrow(() -> unusable(label.get()));
              var entry = prepared.computeIfAbsent(call, _ -> maker.get());
              var all = enqueued(entry, state, call, label, ofIteration);
              var first = all.getFirst();
              for (var other : all.subList(1, all.size())) {
                first.await(Work.of(label), other.mark());
              }
              latest = first;
              keepFew(label);
              return state;
            });
  }

  /// Enqueues a collective behind those before it. Returns its streams.
  private List<Stream> enqueued(
      Prepared entry,
      CollectiveState state,
      CollectiveCall call,
      Supplier<String> label,
      int ofIteration) {
    var _ = crossed(call);
    var all = streams(call.route());
    step++;
    all.forEach(stream -> stream.turn(ofIteration, step));
    followLatest(all);
    launch(entry, state, call, label);
    return all;
  }

  /// Closes everything compiled if it is too much.
  private void keepFew(Supplier<String> label) {
    if (prepared.size() > MOST_PREPARED) {
      streams.values().forEach(each -> each.values().forEach(one -> one.synchronize(label)));
      Closing.all(takePrepared()::poll);
    }
  }

  /// Makes streams wait for the latest collective of a chain: those of a group share signals and
  /// memory, so they run one after the other.
  private void followLatest(List<Stream> all) {
    var before = latest;
    if (before == null) {
      return;
    }
    var end = before.mark();
    for (var stream : all) {
      if (!stream.equals(before)) {
        stream.await(Work.of(() -> "the collective before"), end);
      }
    }
  }

  /// Notes that a collective of a chain failed.
  void fail(Throwable cause) {
    failure = cause;
  }

  /// Returns the schedule of a collective, if copies run it.
  public Optional<Schedule> schedule(CollectiveCall call) {
    return call.route().way().library().isPresent()
        ? Optional.empty()
        : Optional.of(schedule(call, CollectiveSpec.LibraryNeeds.NONE));
  }

  private Schedule schedule(CollectiveCall call, CollectiveSpec.LibraryNeeds needs) {
    if (schedules.size() >= MOST_PREPARED) {
      schedules.clear();
    }
    var place = group.place();
    return schedules.computeIfAbsent(
        call.spec(needs, place.rank()), spec -> CollectivePlanner.plan(spec, place.size()));
  }

  /// Returns the ranks of the world whose call this rank's latest one waits for.
  private List<Integer> absent(boolean needsAll) {
    return group.calls().absent().stream()
        .filter(rank -> needsAll || group.backend().awaits(rank))
        .toList();
  }

  /// Empties the cache and returns everything compiled, for closing.
  private Deque<AutoCloseable> takePrepared() {
    var compiled = new ArrayDeque<AutoCloseable>();
    for (var each : prepared.values()) {
      if (each.compiled != null) {
        compiled.add(each.compiled);
      }
    }
    prepared.clear();
    return compiled;
  }

  /// Enqueues a call on its streams. It is compiled once, except for library calls, whose needs
  /// before a call change from call to call.
  private void launch(
      Prepared entry, CollectiveState state, CollectiveCall call, Supplier<String> label) {
    var route = call.route();
    if (route.way().library().isPresent()) {
      executor(state, call, label).layOut();
      return;
    }
    var compiled = entry.compiled;
    if (compiled == null) {
      var executor = executor(state, call, label);
      compiled = group.backend().compile(streams(route), executor::layOut, false);
      entry.compiled = compiled;
    }
    compiled.launch();
  }

  private Optional<List<Integer>> separateHosts() {
    return group.backend().separateHosts(group.ranks());
  }

  private static boolean isByLibrary(CollectiveCall call) {
    return call.collective() != Collective.BARRIER && call.route().way().library().isPresent();
  }

  /// Returns how a call crosses hosts, and connects its ranks. Collective, as the call is.
  private Optional<Executor.Crossed> crossed(CollectiveCall call) {
    var hosts = separateHosts();
    if (hosts.isEmpty() || isByLibrary(call)) {
      return Optional.empty();
    }
    var schedule = schedule(call, CollectiveSpec.LibraryNeeds.NONE);
    var known = crossed.get(schedule);
    if (known == null) {
      var crossing = new Crossing(schedule, hosts.get());
      var channels = crossing.channels();
      if (channels.isEmpty()) {
        return Optional.empty();
      }
      requireNccl();
      var streamsOf = new HashMap<Channel, Stream>();
      for (var channel : crossing.touching(group.place().rank())) {
        var lane = channel.passiveLane();
        streamsOf.put(channel, lanes(call.route()).computeIfAbsent(lane, group.backend()::stream));
      }
      known =
          new Executor.Crossed(
              crossing,
              group.backend().channels(channels, group.rendezvous()),
              streamsOf,
              this::scratch);
      crossed.put(schedule, known);
    }
    known.channels().connect();
    return Optional.of(known);
  }

  /// Requires NCCL on all ranks. If it is missing on one, this fails on all.
  private void requireNccl() {
    var reasons =
        group
            .rendezvous()
            .get()
            .exchange(
                "connect hosts", group.backend().missing(Transport.NCCL_KERNELS).orElse(NONE));
    for (int rank = 0; rank < reasons.size(); rank++) {
      if (!reasons.get(rank).isEmpty()) {
        throw new BraidException(
            in(
                "collectives between hosts need NCCL: rank %d: %s"
                    .formatted(rank, reasons.get(rank))));
      }
    }
  }

  private MemorySegment scratch(String name, long bytes) {
    return scratch.computeIfAbsent(name, _ -> group.backend().allocate(bytes)).segment();
  }

  private Executor executor(CollectiveState state, CollectiveCall call, Supplier<String> label) {
    var place = group.place();
    var library =
        isByLibrary(call) ? call.route().way().library().map(this::library).orElse(null) : null;
    var request = library == null ? null : call.request(place.rank());
    var needs = CollectiveSpec.LibraryNeeds.NONE;
    if (library != null && request != null) {
      var precondition = library.precondition(request);
      if (separateHosts().isPresent()) {
        // Ranks of other hosts have no signals, and the library's kernels wait for late ranks.
        if (precondition != Precondition.NONE) {
          var _ = group.rendezvous().get().exchange("reach " + call.collective(), NONE);
        }
      } else {
        needs =
            new CollectiveSpec.LibraryNeeds(
                precondition != Precondition.NONE,
                precondition == Precondition.ARRIVAL_ON_HOST,
                library.needsCompletionSignal());
      }
    }
    var schedule = schedule(call, needs);
    var resources =
        new CollectiveResources(
            place.size(),
            call.x(),
            call.y(),
            lanes(call.route()),
            state.signals(),
            this::inbox,
            library,
            request,
            crossed(call));
    return new Executor(schedule, place.rank(), resources, Scales.NONE, label);
  }

  private MemorySegment inbox() {
    var memory = inbox;
    if (memory == null) {
      memory = group.backend().allocate(CollectiveSpec.inboxBytes(group.place().size()));
      inbox = memory;
    }
    return memory.segment();
  }

  /// Sets up a library on all ranks together, once. If it is missing on one rank, this fails on all
  /// ranks, and collectives remain usable as before.
  public void setUp(Transport requested) {
    var label = "set up collectives over " + requested;
    check(
        label,
        _ -> {
          if (libraries.containsKey(requested)) {
            return Optional.empty();
          }
          var missing = missing(label, requested);
          if (missing.isEmpty()) {
            var _ = library(requested);
          }
          return missing;
        });
  }

  private Optional<Refusal> missing(String label, Transport library) {
    var reasons = meet(label, group.backend().missing(library).orElse(NONE));
    return IntStream.range(0, reasons.size())
        .filter(rank -> !reasons.get(rank).isEmpty())
        .mapToObj(rank -> new Refusal("rank %d: %s".formatted(rank, reasons.get(rank))))
        .findFirst();
  }

  private LibraryCollectives library(Transport library) {
    var existing = libraries.get(library);
    if (existing == null) {
      existing = group.backend().library(library, group.rendezvous());
      libraries.put(library, existing);
    }
    return existing;
  }

  /// A message to send: its tensor and the receiving rank.
  public record Message(MessageHeader header, int peer, ReachableTensor from) {}

  /// A message of this rank to itself that was sent but not yet received.
  private record SelfMessage(MessageHeader header, PrivateMemory memory, AtomicBoolean reported) {}

  /// A message to receive: the tensor it is copied into, the sending rank, and a lookup of tensors
  /// by identity.
  public record Landing(
      MessageHeader header,
      int peer,
      ReachableTensor target,
      Function<String, Optional<ReachableTensor>> tensors) {}

  /// Sends a message and waits until it is read. A message of a rank to itself is copied at once,
  /// because the rank cannot receive while it waits.
  public void send(CollectiveRoute route, Message out) {
    check(
        "send of %s to rank %d".formatted(out.header(), out.peer()),
        state -> {
          post(state, route, out);
          return awaitRead(state, out);
        });
  }

  private void post(CollectiveState state, CollectiveRoute route, Message out) {
    if (!isOwn(out.peer())) {
      state.messages().post(out.header(), out.peer());
      return;
    }
    var source = out.from().on(out.peer());
    var memory = group.backend().allocate(source.byteSize());
    selfMessages.add(new SelfMessage(out.header(), memory, new AtomicBoolean()));
    copyOwn(route, out.header(), source, memory.segment());
  }

  private Optional<Refusal> awaitRead(CollectiveState state, Message out) {
    return isOwn(out.peer())
        ? Optional.empty()
        : state.messages().awaitRead(out.header(), out.peer());
  }

  private Optional<Refusal> receiveOwn(CollectiveRoute route, Landing landing) {
    var sent = selfMessages.poll();
    if (sent == null) {
      return Optional.of(
          new Refusal("this rank has sent nothing to itself; send before it receives"));
    }
    try (var memory = sent.memory()) {
      if (!sent.header().fits(landing.header())) {
        return Optional.of(Messages.mismatch(landing.peer(), sent.header()));
      }
      copyOwn(route, landing.header(), memory.segment(), landing.target().on(landing.peer()));
      return Optional.empty();
    }
  }

  private void copyOwn(
      CollectiveRoute route, MessageHeader header, MemorySegment from, MemorySegment to) {
    var stream = communication(route);
    stream.turn(iteration, step);
    Supplier<String> label = () -> in("%s from this rank itself".formatted(header));
    stream.copyLocal(Work.of(label), from, to);
    stream.synchronize(label);
  }

  private boolean isOwn(int rank) {
    return rank == group.place().rank();
  }

  /// Waits for the next message from a rank and copies it.
  public void receive(CollectiveRoute route, Landing landing) {
    check(
        "receive into %s from rank %d".formatted(landing.header(), landing.peer()),
        state -> receive(state, route, landing));
  }

  /// Sends and receives at the same time, so that ranks may exchange messages in a ring.
  public void sendReceive(CollectiveRoute route, Message out, Landing landing) {
    check(
        "sendReceive of %s to rank %d and into %s from rank %d"
            .formatted(out.header(), out.peer(), landing.header(), landing.peer()),
        state -> {
          post(state, route, out);
          var refused = receive(state, route, landing);
          var notTaken = awaitRead(state, out);
          return refused.isPresent() ? refused : notTaken;
        });
  }

  private Optional<Refusal> receive(CollectiveState state, CollectiveRoute route, Landing landing) {
    if (isOwn(landing.peer())) {
      return receiveOwn(route, landing);
    }
    return state
        .messages()
        .receive(
            landing.header(),
            landing.peer(),
            sent -> {
              if (isApart(landing.peer())) {
                return Optional.of(
                    "rank %d is on another host, and messages between GPUs stay within one; take a collective"
                        .formatted(landing.peer()));
              }
              var source = landing.tensors().apply(sent.identity());
              if (source.isEmpty()) {
                return Optional.of(
                    "%s is closed on rank %d; close it after it was received"
                        .formatted(sent, group.place().rank()));
              }
              copy(source.get(), landing, route);
              return Optional.empty();
            });
  }

  /// Returns whether a rank is on another host, whose memory this rank has no address of.
  private boolean isApart(int rank) {
    return separateHosts()
        .map(hosts -> !hosts.get(rank).equals(hosts.get(group.place().rank())))
        .orElse(false);
  }

  private void copy(ReachableTensor source, Landing landing, CollectiveRoute route) {
    var stream = communication(route);
    stream.turn(iteration, step);
    Supplier<String> label =
        () -> in("%s from rank %d".formatted(landing.header(), landing.peer()));
    stream.copy(
        Work.of(label), source.on(landing.peer()), landing.target().on(group.place().rank()));
    stream.synchronize(label);
  }

  private void check(String label, Function<CollectiveState, Optional<Refusal>> body) {
    var refusal = exclusively(() -> label, () -> NvtxRange.open(() -> "braid " + label), body);
    if (refusal.isPresent()) {
      throw new BraidException("%s: %s".formatted(in(label), refusal.get().reason()));
    }
  }

  private String in(String label) {
    return "%s in group `%s`".formatted(label, group.name());
  }

  /// Runs `body` on one thread at a time. An exception leaves ranks at different steps, so all
  /// later calls fail; a refused message does not, because both of its ranks get the refusal.
  ///
  /// @param label names the call in messages
  /// @param range marks the call for other profilers
  private Optional<Refusal> exclusively(
      Supplier<String> label,
      Supplier<NvtxRange> range,
      Function<CollectiveState, Optional<Refusal>> body) {
    return inTurn(
        label,
        () -> {
          var state = usable().orElseThrow(() -> unusable(label.get()));
          try (var _ = range.get()) {
            return body.apply(state);
          } catch (RuntimeException | Error e) {
            failure = e;
            if (group.calls().failed()) {
              quiesce();
            }
            throw e;
          }
        });
  }

  /// Aborts the waits of the streams after ranks made different calls: the signals never arrive,
  /// and the next round does not report it. A library is aborted when it is freed.
  synchronized void quiesce() {
    crossed.values().forEach(each -> each.channels().abort());
    streams.forEach(
        (route, each) -> {
          if (route.way().library().isEmpty()) {
            group.backend().quiesce(List.copyOf(each.values()));
          }
        });
  }

  private BraidException unusable(String label) {
    var cause = failure;
    if (cause == null) {
      return new BraidException(
          "%s: collectives are not set up; call Collectives.on(group) again on every rank"
              .formatted(in(label)));
    }
    return new BraidException(
        "%s: an earlier collective failed (%s) and ranks may be at different steps; call Collectives.on(group) again on every rank"
            .formatted(in(label), cause.getMessage()),
        cause);
  }

  /// Profiles calls of this thread, which set [#iteration].
  public <T> T profiling(Supplier<T> body) {
    return inTurn(
        () -> "profile",
        () -> {
          try {
            return body.get();
          } finally {
            iteration(0);
          }
        });
  }

  private <T> T inTurn(Supplier<String> label, Supplier<T> body) {
    boolean entered =
        caller.enter(
            () -> in(label.get()),
            "call collectives from one thread, so that all ranks call them in the same order");
    try {
      int current = group.waits().epoch();
      if (epoch != current) {
        begin(current);
      }
      return body.get();
    } finally {
      if (entered) {
        caller.leave();
      }
    }
  }

  /// Restarts the counters in a new epoch, as on all ranks.
  private void begin(int newEpoch) {
    epoch = newEpoch;
    step = 0;
    failure = null;
    latest = null;
    Closing.all(this::unreceived);
    var current = state;
    if (current != null) {
      current.messages().beginEpoch(newEpoch);
    }
  }

  /// Describes messages of this rank to itself that were sent in this epoch and not received, each
  /// once. May be called while another thread is in a call.
  public List<String> unreceivedMessages() {
    var texts = new ArrayList<String>();
    if (epoch == group.waits().epoch()) {
      for (var sent : selfMessages) {
        if (!sent.reported.getAndSet(true)) {
          texts.add(
              "rank %d of group `%s` has sent %s to itself and not received it; call receive(y, %d)"
                  .formatted(
                      group.place().rank(), group.name(), sent.header, group.place().rank()));
        }
      }
    }
    return texts;
  }

  private @Nullable PrivateMemory unreceived() {
    var sent = selfMessages.poll();
    return sent == null ? null : sent.memory();
  }

  private synchronized Map<Lane, Stream> lanes(CollectiveRoute route) {
    return streams.computeIfAbsent(
        route,
        key -> {
          var opened = new LinkedHashMap<Lane, Stream>();
          for (var lane : CollectiveSpec.lanes(key.way(), key.workers())) {
            opened.put(lane, group.backend().stream(lane));
          }
          return opened;
        });
  }

  private Stream communication(CollectiveRoute route) {
    return streams(route).getFirst();
  }

  /// Returns the streams of collectives over a route.
  public List<Stream> streams(CollectiveRoute route) {
    return List.copyOf(lanes(route).values());
  }

  /// Sets the iteration number of the work that follows.
  public void iteration(int number) {
    iteration = number;
  }

  private synchronized void free() {
    var all = new ArrayDeque<AutoCloseable>();
    var used = List.copyOf(libraries.values());
    libraries.clear();
    if (failure != null) {
      // First: a stream on which a library waits for missing ranks cannot be closed.
      used.forEach(each -> all.add(each::abort));
      crossed.values().forEach(each -> all.add(each.channels()::abort));
    }
    all.addAll(takePrepared());
    latest = null;
    all.add(() -> Closing.all(this::unreceived));
    streams.values().forEach(each -> all.addAll(List.copyOf(each.values()).reversed()));
    streams.clear();
    var memory = inbox;
    inbox = null;
    if (memory != null) {
      all.add(memory);
    }
    all.addAll(scratch.values());
    scratch.clear();
    crossed.values().forEach(each -> all.add(each.channels()));
    crossed.clear();
    var shared = state;
    state = null;
    if (shared != null) {
      all.add(failure == null ? shared : shared::spoil);
    }
    all.addAll(used);
    Closing.all(all::poll);
  }

  /// Frees all resources of this rank, without waiting for other ranks.
  @Override
  public void close() {
    free();
  }
}
