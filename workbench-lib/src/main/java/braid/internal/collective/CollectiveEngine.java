package braid.internal.collective;

import braid.internal.backend.Executable;
import braid.internal.backend.Stream;
import braid.internal.collective.Messages.Refusal;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryCollectives.Precondition;
import braid.internal.memory.Call;
import braid.internal.rank.Closing;
import braid.internal.resource.PrivateMemory;
import braid.internal.run.Executor;
import braid.internal.work.Work;
import braid.model.BraidException;
import braid.model.Library;
import braid.model.Scales;
import braid.natives.profiling.NvtxRange;
import braid.schedule.Collective;
import braid.schedule.CollectiveSpec;
import braid.schedule.Lane;
import braid.schedule.Schedule;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// What a group keeps for its collectives, and the order in which this rank makes them. It is set
/// up once; a collective then costs no meeting, only the signals between those that read from each
/// other.
public final class CollectiveEngine implements AutoCloseable {
  private static final String SET_UP = "set up collectives";
  private static final String NONE = "";

  /// More calls than a program repeats; beyond them all are prepared anew.
  private static final int MOST_PREPARED = 256;

  private final CollectiveGroup setting;

  /// Ranks number their collectives, so there must be an order.
  private final ReentrantLock one = new ReentrantLock();

  private final Map<CollectiveRoute, Map<Lane, Stream>> streams = new HashMap<>();

  /// Schedules by all that they depend on.
  private final Map<CollectiveSpec, Schedule> schedules = new HashMap<>();

  private final Map<CollectiveCall, Prepared> prepared = new ConcurrentHashMap<>();

  private final Map<Library, LibraryCollectives> libraries = new EnumMap<>(Library.class);

  /// Messages of this rank to itself that it has not received, in their order.
  private final Deque<Kept> kept = new ArrayDeque<>();

  /// Memory in which this rank adds up.
  private @Nullable PrivateMemory inbox;

  private @Nullable CollectiveState ground;
  private @Nullable Throwable broken;

  /// In which all ranks have last agreed that they have the same ground.
  private int agreedRound;

  private int epoch;
  private int step;
  private int iteration;

  public CollectiveEngine(CollectiveGroup setting) {
    this.setting = setting;
  }

  /// Makes sure that all ranks have set up the same. They meet for it at their first call, and once
  /// more after a failure: it may have struck while only some had it.
  public void setUp() {
    var _ =
        inTurn(
            () -> SET_UP,
            () -> {
              if (ground == null || broken != null || agreedRound != round()) {
                agree();
              }
              return Optional.empty();
            });
  }

  private void agree() {
    var said =
        meet(SET_UP, usable().map(CollectiveState::name).orElse(NONE)).stream().distinct().toList();
    if (said.size() > 1 || said.contains(NONE)) {
      free();
      ground = CollectiveState.of(setting, setting.rendezvous().get());
      begin(epoch);
    }
    agreedRound = round();
  }

  private int round() {
    return setting.calls().round();
  }

  private List<String> meet(String label, String value) {
    return setting
        .calls()
        .meet(Call.of(label), () -> setting.rendezvous().get().exchange(label, value));
  }

  private Optional<CollectiveState> usable() {
    return broken == null ? Optional.ofNullable(ground) : Optional.empty();
  }

  /// A collective with its tensors, kept for the next call that is equal.
  private static final class Prepared {
    private final Call call;
    private final NvtxRange range;
    private @Nullable Executable compiled;

    Prepared(Call call) {
      this.call = call;
      this.range = NvtxRange.named(() -> "braid " + call);
    }
  }

  /// Makes a collective, to its end on this rank. All ranks make it together.
  ///
  /// @param needsAll whether this rank waits for every other
  /// @param call what all ranks must say alike; asked for once
  public void make(CollectiveCall wanted, boolean needsAll, Supplier<Call> call) {
    if (agreedRound != round() && ground != null) {
      setUp();
    }
    var made = prepared.computeIfAbsent(wanted, _ -> new Prepared(call.get()));
    var _ =
        exclusively(
            made.call::name,
            made.range::open,
            here -> {
              setting.calls().enter(made.call);
              step++;
              if (needsAll) {
                here.mailbox().stand(new WaitState(WaitState.Kind.COLLECTIVE, epoch, 0, step));
              }
              var on = on(wanted.over());
              on.values().forEach(stream -> stream.turn(iteration, step));
              Supplier<String> what = () -> in(made.call.name());
              launch(made, here, wanted, what);
              on.values().forEach(stream -> stream.synchronize(what));
              here.mailbox().stand(WaitState.NOWHERE);
              if (prepared.size() > MOST_PREPARED) {
                Closing.all(prepared()::poll);
              }
              return Optional.empty();
            });
  }

  /// All that is compiled, to be closed; nothing is prepared any more.
  private Deque<AutoCloseable> prepared() {
    var compiled = new ArrayDeque<AutoCloseable>();
    for (var each : prepared.values()) {
      if (each.compiled != null) {
        compiled.add(each.compiled);
      }
    }
    prepared.clear();
    return compiled;
  }

  /// Gives the work of a call to its streams. It is compiled once, but not where a library makes
  /// it: what that needs before a call changes with its calls.
  private void launch(
      Prepared made, CollectiveState here, CollectiveCall wanted, Supplier<String> what) {
    var over = wanted.over();
    if (over.way().library().isPresent()) {
      executor(here, wanted, what).layOut();
      return;
    }
    var compiled = made.compiled;
    if (compiled == null) {
      var executor = executor(here, wanted, what);
      compiled = setting.backend().compile(streams(over), executor::layOut, false);
      made.compiled = compiled;
    }
    compiled.launch();
  }

  private Executor executor(CollectiveState here, CollectiveCall wanted, Supplier<String> what) {
    var place = setting.place();
    var by =
        wanted.collective() == Collective.BARRIER
            ? null
            : wanted.over().way().library().map(this::library).orElse(null);
    var request = by == null ? null : wanted.request(place.rank());
    var needs = CollectiveSpec.Library.NONE;
    if (by != null && request != null) {
      var precondition = by.precondition(request);
      needs =
          new CollectiveSpec.Library(
              precondition != Precondition.NONE,
              precondition == Precondition.ARRIVAL_ON_HOST,
              by.needsCompletionSignal());
    }
    if (schedules.size() >= MOST_PREPARED) {
      schedules.clear();
    }
    var schedule =
        schedules.computeIfAbsent(
            wanted.spec(needs, place.rank()), spec -> Schedule.of(spec, place.size()));
    var bound =
        new CollectiveResources(
            place.size(),
            wanted.x(),
            wanted.y(),
            on(wanted.over()),
            here.words(),
            this::inbox,
            by,
            request);
    return new Executor(schedule, place.rank(), bound, Scales.NONE, what);
  }

  private MemorySegment inbox() {
    var memory = inbox;
    if (memory == null) {
      memory = setting.backend().allocate(CollectiveSpec.inboxBytes(setting.place().size()));
      inbox = memory;
    }
    return memory.segment();
  }

  /// Sets that library up where it is not yet; all ranks do it together. Where one of them cannot
  /// have it, all are told, and the collectives go on as before.
  public void setUp(Library which) {
    Supplier<String> what = () -> "set up collectives by " + which;
    check(
        what.get(),
        exclusively(
            what,
            _ -> {
              if (libraries.containsKey(which)) {
                return Optional.empty();
              }
              var missing = missing(what.get(), which);
              if (missing.isEmpty()) {
                var _ = library(which);
              }
              return missing;
            }));
  }

  private Optional<Refusal> missing(String label, Library which) {
    var said = meet(label, setting.backend().missing(which).orElse(NONE));
    return IntStream.range(0, said.size())
        .filter(rank -> !said.get(rank).isEmpty())
        .mapToObj(rank -> new Refusal("rank %d: %s".formatted(rank, said.get(rank))))
        .findFirst();
  }

  private LibraryCollectives library(Library which) {
    var existing = libraries.get(which);
    if (existing == null) {
      existing = setting.backend().library(which, setting.rendezvous());
      libraries.put(which, existing);
    }
    return existing;
  }

  /// A message's tensor and the rank that it is for.
  public record Message(MessageHeader letter, int peer, ReachableTensor from) {}

  /// A message of this rank to itself, from when it is sent until it is received.
  private record Kept(MessageHeader letter, PrivateMemory memory) {}

  /// Where a message is received into, and how what was sent is found by its identity.
  public record Landing(
      MessageHeader letter,
      int peer,
      ReachableTensor into,
      Function<String, Optional<ReachableTensor>> tensors) {}

  /// Sends that and waits until it is read. A message of a rank to itself is copied at once, since
  /// the rank could not receive it while it waits.
  public void send(CollectiveRoute over, Message out) {
    var what = "send of %s to rank %d".formatted(out.letter(), out.peer());
    check(
        what,
        exclusively(
            () -> what,
            here -> {
              post(here, over, out);
              return awaitRead(here, out);
            }));
  }

  private void post(CollectiveState here, CollectiveRoute over, Message out) {
    if (!isOwn(out.peer())) {
      here.courier().post(out.letter(), out.peer());
      return;
    }
    var source = out.from().on(out.peer());
    var memory = setting.backend().allocate(source.byteSize());
    kept.add(new Kept(out.letter(), memory));
    copyOwn(over, out.letter(), source, memory.segment());
  }

  private Optional<Refusal> awaitRead(CollectiveState here, Message out) {
    return isOwn(out.peer())
        ? Optional.empty()
        : here.courier().awaitRead(out.letter(), out.peer(), step);
  }

  private Optional<Refusal> receiveOwn(CollectiveRoute over, Landing in) {
    var sent = kept.poll();
    if (sent == null) {
      return Optional.of(
          new Refusal("this rank has sent nothing to itself; send before it receives"));
    }
    try (var memory = sent.memory()) {
      if (!sent.letter().fits(in.letter())) {
        return Optional.of(Messages.misfit(in.peer(), sent.letter()));
      }
      copyOwn(over, in.letter(), memory.segment(), in.into().on(in.peer()));
      return Optional.empty();
    }
  }

  private void copyOwn(
      CollectiveRoute over, MessageHeader letter, MemorySegment from, MemorySegment to) {
    var stream = communication(over);
    stream.turn(iteration, step);
    Supplier<String> what = () -> in("%s from this rank itself".formatted(letter));
    stream.copyLocal(Work.of(what), from, to);
    stream.synchronize(what);
  }

  private boolean isOwn(int rank) {
    return rank == setting.place().rank();
  }

  /// Waits for what that rank sends next, and copies it.
  public void receive(CollectiveRoute over, Landing in) {
    var what = "receive into %s from rank %d".formatted(in.letter(), in.peer());
    check(what, exclusively(() -> what, here -> receive(here, over, in)));
  }

  /// Both at once, so that ranks may do it in a circle.
  public void sendReceive(CollectiveRoute over, Message out, Landing in) {
    var what =
        "sendReceive of %s to rank %d and into %s from rank %d"
            .formatted(out.letter(), out.peer(), in.letter(), in.peer());
    check(
        what,
        exclusively(
            () -> what,
            here -> {
              post(here, over, out);
              var refused = receive(here, over, in);
              var notTaken = awaitRead(here, out);
              return refused.isPresent() ? refused : notTaken;
            }));
  }

  private Optional<Refusal> receive(CollectiveState here, CollectiveRoute over, Landing in) {
    if (isOwn(in.peer())) {
      return receiveOwn(over, in);
    }
    return here.courier()
        .receive(
            in.letter(),
            in.peer(),
            step,
            sent -> {
              var source = in.tensors().apply(sent.identity());
              if (source.isEmpty()) {
                return Optional.of(
                    "%s is closed on rank %d; close it when it has been received"
                        .formatted(sent, setting.place().rank()));
              }
              copy(source.get(), in, over);
              return Optional.empty();
            });
  }

  private void copy(ReachableTensor source, Landing in, CollectiveRoute over) {
    var stream = communication(over);
    stream.turn(iteration, step);
    Supplier<String> what = () -> in("%s from rank %d".formatted(in.letter(), in.peer()));
    stream.copy(Work.of(what), source.on(in.peer()), in.into().on(setting.place().rank()));
    stream.synchronize(what);
  }

  private void check(String what, Optional<Refusal> refusal) {
    if (refusal.isPresent()) {
      throw new BraidException("%s: %s".formatted(in(what), refusal.get().why()));
    }
  }

  private String in(String what) {
    return "%s in group `%s`".formatted(what, setting.group());
  }

  /// What fails in it leaves ranks at different steps, so nothing runs after it; a message that
  /// does not fit is none of that, since both its ranks know.
  private Optional<Refusal> exclusively(
      Supplier<String> what, Function<CollectiveState, Optional<Refusal>> body) {
    return exclusively(what, () -> NvtxRange.open(() -> "braid " + what.get()), body);
  }

  /// @param what for messages
  /// @param range for other profilers
  private Optional<Refusal> exclusively(
      Supplier<String> what,
      Supplier<NvtxRange> range,
      Function<CollectiveState, Optional<Refusal>> body) {
    return inTurn(
        what,
        () -> {
          var here = usable().orElseThrow(() -> unusable(what.get()));
          try (var _ = range.get()) {
            return body.apply(here);
          } catch (RuntimeException | Error e) {
            broken = e;
            if (setting.calls().failed()) {
              rest();
            }
            throw e;
          }
        });
  }

  /// What the streams wait for does not come where ranks called different things, and the next
  /// round will not tell them. A library is aborted when its communicators are given up.
  private synchronized void rest() {
    streams.forEach(
        (over, each) -> {
          if (over.way().library().isEmpty()) {
            setting.backend().rest(List.copyOf(each.values()));
          }
        });
  }

  private BraidException unusable(String what) {
    var why = broken;
    if (why == null) {
      return new BraidException(
          "%s: collectives are not set up; say Collectives.on(group) again on every rank"
              .formatted(in(what)));
    }
    return new BraidException(
        "%s: collectives broke off before (%s) and ranks may be at different steps; say Collectives.on(group) again on every rank"
            .formatted(in(what), why.getMessage()),
        why);
  }

  private Optional<Refusal> inTurn(Supplier<String> what, Supplier<Optional<Refusal>> body) {
    if (!one.tryLock()) {
      throw new BraidException(
          "%s: another thread of this rank is in a collective; make them from one thread, so that all ranks make them in the same order"
              .formatted(in(what.get())));
    }
    try {
      int current = setting.waits().epoch();
      if (epoch != current) {
        begin(current);
      }
      return body.get();
    } finally {
      one.unlock();
    }
  }

  /// Counts from 0 again, as all ranks do.
  private void begin(int current) {
    epoch = current;
    step = 0;
    broken = null;
    Closing.all(this::unreceived);
    var here = ground;
    if (here != null) {
      here.courier().beginEpoch(current);
    }
  }

  private @Nullable PrivateMemory unreceived() {
    var sent = kept.poll();
    return sent == null ? null : sent.memory();
  }

  private synchronized Map<Lane, Stream> on(CollectiveRoute over) {
    return streams.computeIfAbsent(
        over,
        how -> {
          var opened = new LinkedHashMap<Lane, Stream>();
          for (var lane : CollectiveSpec.lanes(how.way(), how.workers())) {
            opened.put(lane, setting.backend().stream(lane));
          }
          return opened;
        });
  }

  private Stream communication(CollectiveRoute over) {
    return streams(over).getFirst();
  }

  /// The streams that collectives over that run on.
  public List<Stream> streams(CollectiveRoute over) {
    return List.copyOf(on(over).values());
  }

  /// From here on work is of that iteration of a measurement.
  public void iteration(int number) {
    iteration = number;
  }

  private synchronized void free() {
    var all = new ArrayDeque<AutoCloseable>();
    if (broken != null) {
      // First: a stream on which a library waits for ranks that do not come cannot be closed.
      libraries.values().forEach(each -> all.add(each::abort));
    }
    libraries.clear();
    all.addAll(prepared());
    all.add(() -> Closing.all(this::unreceived));
    streams.values().forEach(each -> all.addAll(List.copyOf(each.values()).reversed()));
    streams.clear();
    var memory = inbox;
    inbox = null;
    if (memory != null) {
      all.add(memory);
    }
    var here = ground;
    ground = null;
    if (here != null) {
      all.add(broken == null ? here : here::spoil);
    }
    Closing.all(all::poll);
  }

  /// Frees everything of this rank. No rank waits for another.
  @Override
  public void close() {
    free();
  }
}
