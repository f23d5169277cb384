package braid.internal.context;

import braid.internal.backend.Backend;
import braid.internal.cuda.CudaBackend;
import braid.internal.host.HostBackend;
import braid.internal.rank.CallsDiffer;
import braid.internal.rank.Closing;
import braid.internal.rank.Env;
import braid.internal.rank.Need;
import braid.internal.rank.Outbox;
import braid.internal.rank.Waits;
import braid.internal.remote.Hosts;
import braid.internal.remote.Network;
import braid.internal.store.LocalStore;
import braid.internal.store.Meeting;
import braid.internal.store.MeetingTable;
import braid.internal.store.Reply;
import braid.internal.store.Store;
import braid.internal.store.StoreClient;
import braid.internal.store.Ticket;
import braid.model.BraidException;
import braid.model.GroupAborted;
import braid.model.MemoryKind;
import braid.model.Place;
import braid.model.Transport;
import braid.natives.cuda.Gpu;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Everything that belongs to one rank. A process has one context, created from its environment at
/// first use. A rank that is a thread has its own, which the threads it starts inherit.
public final class RankContext implements AutoCloseable {
  private static final InheritableThreadLocal<@Nullable RankContext> OF_THREAD =
      new InheritableThreadLocal<>() {
        @Override
        protected @Nullable RankContext childValue(@Nullable RankContext parent) {
          if (parent != null) {
            parent.hasThreads = true;
          }
          return parent;
        }
      };
  private static final Object PROCESS = new Object();
  private static @Nullable RankContext ofProcess;

  /// Time limit of the reply to giving up a meeting, which names the missing ranks.
  private static final Duration GIVE_UP_REPLY_TIMEOUT = Duration.ofSeconds(5);

  /// Time limit within which a release that has reached another rank must reach this one.
  private static final Duration RELEASE_DELAY = Duration.ofSeconds(1);

  private final Env env;
  private final AtomicLong decidingNanos = new AtomicLong();
  private final String token;
  private final Store store;
  private final Waits waits;
  private final Topology topology;
  private final Network network;
  private final Map<Class<?>, RankLocal> rankLocals = new HashMap<>();
  private volatile Outbox outbox = Outbox.CONSOLE;
  private volatile boolean hasThreads;
  private @Nullable Backend backend;
  private boolean closed;

  private RankContext(Env env, String token, Store store) {
    this.env = env;
    this.token = token;
    this.store = store;
    this.waits = new Waits(env.timeout());
    waits.reportTo(store::report);
    this.topology = new Topology(env, store, waits);
    this.network = new Network(env.world().rank(), topology::hosts, waits);
  }

  /// Returns this thread's rank. If setting it up fails (its store refuses it), the next call tries
  /// again.
  public static RankContext current() {
    var ofThread = OF_THREAD.get();
    if (ofThread != null) {
      return ofThread;
    }
    synchronized (PROCESS) {
      var context = ofProcess;
      if (context == null) {
        context = open(Env.ofProcess());
        ofProcess = context;
      }
      return context;
    }
  }

  /// Opens a separate rank for the environment. The caller closes it.
  public static RankContext open(Env env) {
    int rank = env.world().rank();
    return env.store()
        .map(
            address ->
                new RankContext(
                    env,
                    address.token(),
                    StoreClient.connect(address.host(), address.port(), address.token(), rank)))
        .orElseGet(
            () ->
                new RankContext(
                    env, UUID.randomUUID().toString(), new LocalStore(new MeetingTable(), rank)));
  }

  /// Opens a rank that shares its process and meeting table with others.
  public static RankContext ofThread(Env env, String token, MeetingTable table) {
    return new RankContext(env, token, new LocalStore(table, env.world().rank()));
  }

  /// Runs the body as this rank.
  public <T> T run(Callable<T> body) throws Exception {
    var before = OF_THREAD.get();
    OF_THREAD.set(this);
    try {
      return body.call();
    } finally {
      if (before == null) {
        OF_THREAD.remove();
      } else {
        OF_THREAD.set(before);
      }
    }
  }

  /// Returns true if code of this rank, which is a thread, has started threads. Those of the
  /// library do not count, since they do not inherit the rank.
  public boolean hasThreads() {
    return hasThreads;
  }

  public Place place() {
    return env.world();
  }

  public Env env() {
    return env;
  }

  /// Returns the time that is left to this session's studies for measuring until they are decided;
  /// zero if their own budgets are all they have, or if their times are no evidence.
  public Duration timeToDecide() {
    return env.untilDecided()
        .filter(_ -> backend().ranksPerDevice() == 1)
        .map(limit -> limit.minusNanos(decidingNanos.get()))
        .filter(Duration::isPositive)
        .orElse(Duration.ZERO);
  }

  /// Counts the duration of a study's measurement.
  public void spentDeciding(long nanos) {
    decidingNanos.addAndGet(nanos);
  }

  public Waits waits() {
    return waits;
  }

  public Outbox outbox() {
    return outbox;
  }

  public void outbox(Outbox replacement) {
    outbox = replacement;
  }

  /// Returns the hosts of all ranks. The first call waits until every rank has started.
  public Hosts hosts() {
    return topology.hosts();
  }

  /// Returns the kind of symmetric memory that the ranks get for the requested one.
  ///
  /// @param requested null for the default kind
  /// @throws BraidException if the kind is not available, or not between these ranks' hosts
  public MemoryKind memory(@Nullable MemoryKind requested, List<Integer> ranks) {
    return memory(requested, Transport.COPY_ENGINE, ranks);
  }

  /// Returns the kind of symmetric memory that the ranks get for the requested one, and for a
  /// transport: by default the kind that it reaches.
  ///
  /// @param requested null for the default kind
  /// @throws BraidException if the kind is not available, out of the transport's reach, or not
  ///   between these ranks' hosts
  public MemoryKind memory(
      @Nullable MemoryKind requested, Transport transport, List<Integer> ranks) {
    var wanted = requested == null ? env.memory() : requested;
    var reached = transport.memory();
    if (wanted == MemoryKind.AUTO) {
      wanted = reached.orElse(wanted);
    } else if (!reached.map(wanted::equals).orElse(true)) {
      throw new BraidException(
          "%s reaches memory of kind %s only but it was %s; take memory(%s)"
              .formatted(transport, reached.get(), wanted, reached.get().name()));
    }
    var resolved = backend().resolve(wanted);
    if (ranks.size() > 1) {
      hosts().requireSpan(resolved, backend().kind(), ranks);
    }
    return resolved;
  }

  /// Returns the backend. Opened at first use, so that a rank that computes nothing stays small.
  public synchronized Backend backend() {
    var existing = backend;
    if (existing == null) {
      if (closed) {
        throw new IllegalStateException("rank " + place() + " is closed");
      }
      existing = open(env, token, waits, network);
      backend = existing;
    }
    return existing;
  }

  /// Opens the configured backend. `auto` selects GPUs if this machine has one per rank, or if
  /// ranks may share GPUs.
  private static Backend open(Env env, String token, Waits waits, Network network) {
    return switch (env.backend()) {
      case CUDA -> CudaBackend.open(env, token, waits, network);
      case AUTO ->
          Gpu.missing().isEmpty() && (env.shareGpus() || Gpu.count() >= env.local().size())
              ? CudaBackend.open(env, token, waits, network)
              : new HostBackend(env, token, waits, network);
      case HOST -> new HostBackend(env, token, waits, network);
    };
  }

  /// Joins a meeting with a value and waits for the values of all members.
  public List<byte[]> exchange(Meeting meeting, byte[] value) {
    waits.check(meeting::label);
    var ticket = store.join(meeting, value);
    try {
      var need = new Need(() -> "in " + meeting.label(), false, "", meeting.key(), List::of);
      var reply = waits.within(env.timeout(), meeting::label, need, replyOrDeparture(ticket));
      if (reply != null) {
        return values(meeting, reply);
      }
      ticket.giveUp().run();
      reply = waits.within(GIVE_UP_REPLY_TIMEOUT, meeting::label, ticket.reply());
      if (reply != null) {
        return values(meeting, reply);
      }
      throw new BraidException(
          "waited %d s for %s and the store does not answer; raise BRAID_TIMEOUT_SECONDS"
              .formatted(env.timeout().toSeconds(), meeting.label()));
    } catch (BraidException e) {
      // Has no effect if the meeting itself failed.
      ticket.giveUp().run();
      throw e;
    }
  }

  /// Polls for the reply, and reports each new set of departed ranks to the store once.
  private Waits.Attempt<Reply> replyOrDeparture(Ticket ticket) {
    var reported = new HashSet<Set<Integer>>();
    return nanos -> {
      var departed = waits.departed();
      if (!departed.isEmpty() && reported.add(departed)) {
        ticket.departed().accept(departed);
      }
      return waits.poll(ticket.reply(), nanos);
    };
  }

  /// Returns the values, or throws the failure. The exception is created here, so that its stack
  /// trace is that of the waiting rank.
  private List<byte[]> values(Meeting meeting, Reply reply) {
    return switch (reply) {
      case Reply.Values(var all) -> all;
      case Reply.Failed(var message) -> throw new BraidException(message);
      case Reply.Different(var message) -> throw new CallsDiffer(message);
      case Reply.Departed(var missing) -> throw waits.departedFailure(meeting.label(), missing);
      case Reply.Aborted(var reason) -> throw aborted(meeting, reason);
      case Reply.Reported reported ->
          throw new IllegalStateException("not the reply of a meeting: " + reported);
    };
  }

  /// Waits for this rank's release, which follows another rank's within moments and names the
  /// cause.
  private GroupAborted aborted(Meeting meeting, String reason) {
    var never = new CompletableFuture<Boolean>();
    var _ = waits.within(RELEASE_DELAY, meeting::label, never);
    return new GroupAborted(meeting.label(), reason);
  }

  /// State that a higher package keeps per rank.
  public interface RankLocal {
    /// Called when the rank is closed.
    void close();

    /// Describes what a body has left unfinished, each thing once, in a line.
    List<String> unfinished();
  }

  /// Returns the rank's instance of the type, created at first use and closed with the rank.
  public <T extends RankLocal> T rankLocal(Class<T> type, Function<RankContext, T> factory) {
    synchronized (rankLocals) {
      var existing = rankLocals.get(type);
      if (existing == null) {
        existing = factory.apply(this);
        rankLocals.put(type, existing);
      }
      return type.cast(existing);
    }
  }

  /// Describes what the bodies of this rank have left unfinished, each thing once, in a line.
  public List<String> unfinished() {
    synchronized (rankLocals) {
      return rankLocals.values().stream().flatMap(each -> each.unfinished().stream()).toList();
    }
  }

  /// Ends all waits of this rank, present and future, because another rank failed or the user
  /// stopped the cell. May be called from any thread.
  public void release(String reason) {
    waits.release(reason);
  }

  /// Returns true if no stream of this rank has work. May be called from any thread while the rank
  /// runs no body.
  public synchronized boolean isIdle() {
    return backend == null || backend.isIdle();
  }

  /// Resumes after a release: drops the streams' remaining work and begins a new epoch, which
  /// resets all counters. Call it on every rank after every rank's cell has ended, with the same
  /// number, larger than any before. The calls need not be simultaneous.
  public void resume(int epoch) {
    // Streams must come to rest first, or work of the old epoch would continue in the new one.
    waits.release("the session goes on with epoch " + epoch);
    quiesce();
    waits.resume(epoch);
  }

  private synchronized void quiesce() {
    if (backend != null) {
      backend.quiesce();
    }
  }

  /// Frees everything that belongs to this rank. Idempotent.
  @Override
  public void close() {
    waits.release("rank " + place() + " was closed");
    var parts = new ArrayDeque<AutoCloseable>();
    synchronized (rankLocals) {
      rankLocals.values().forEach(each -> parts.add(each::close));
      rankLocals.clear();
    }
    parts.add(this::closeOwn);
    Closing.all(parts::poll);
  }

  private synchronized void closeOwn() {
    if (!closed) {
      closed = true;
      var parts = new ArrayDeque<AutoCloseable>();
      if (backend != null) {
        parts.add(backend::close);
      }
      parts.add(network);
      parts.add(store);
      Closing.all(parts::poll);
    }
  }
}
