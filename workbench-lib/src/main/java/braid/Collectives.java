package braid;

import braid.internal.backend.Stream;
import braid.internal.collective.CollectiveCall;
import braid.internal.collective.CollectiveEngine;
import braid.internal.collective.CollectiveGroup;
import braid.internal.collective.CollectiveRoute;
import braid.internal.collective.MessageHeader;
import braid.internal.collective.ReachableTensor;
import braid.internal.memory.Call;
import braid.model.AllReduce;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.Overlap;
import braid.model.Profile;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Standalone collectives on symmetric tensors:
///
/// ```java
/// var comm = Collectives.on(world);   // or .over(WORKERS).workers(2), .pushing(), .over(NCCL_KERNELS)
/// comm.oneShot().allReduce(x, y);                   // for small tensors; or .twoShot(), the default
/// comm.allGather(x, y);                             // y exists already
/// try (var sum = comm.allReduce(x)) { ... }         // or is allocated, in symmetric memory
/// comm.sendReceive(x, next, y, previous);
/// var profile = comm.profile(50, c -> c.allGather(x, y));
/// var running = comm.start(c -> c.allGather(x, y));   // ... other work ...
/// running.await();
/// ```
///
/// All ranks of the group call the same collectives in the same order with the same tensors; a rank
/// that differs gets an error that names both calls. Shapes differ in the first dimension only:
///
/// | call | x | y |
/// |---|---|---|
/// | `allGather(x, y)` | a, ... | ranks · a, ...: all ranks' `x`, by rank |
/// | `reduceScatter(x, y)` | ranks · a, ... | a, ...: this rank's part of the sum of all `x` |
/// | `allReduce(x, y)` | a, ... | a, ...: the sum of all `x`; `allReduce(x, x)` works in place |
/// | `allToAll(x, y)` | ranks · a, ... | ranks · a, ...: each rank's part for this one |
/// | `broadcast(x, root)` | a, ... | the root's `x`, on every rank |
/// | `send(x, rank)`, `receive(y, rank)` | a, ... | a, ...: only these two ranks call |
///
/// **When a call returns**, this rank's result is complete, and every other rank has read the data
/// it needs from this rank, so `x` may be overwritten; only this rank uses `y`. Results on other
/// ranks may be incomplete: call a barrier before you read them. With a library the same holds as
/// far as the library guarantees it: this rank's part of the call has ended, and no rank reads its
/// `x` any more.
///
/// Sums are added in fp32 in the order of the ranks and rounded once to the type, so every rank and
/// every transport gets the same bits. NCCL adds in its own order and rounds in between: the same
/// bits on all ranks, but other bits than by copies.
///
/// By default each rank fetches data from the others' memory; [#pushing] writes into the others'
/// memory instead, and a library uses its own protocol. All work runs on streams of the group; the
/// caller's thread copies nothing. The ranks meet once when they first get a group's collectives,
/// and once per library; a call needs no meeting, except the first one after a failure. Resources
/// live as long as the group.
public final class Collectives {
  private static final String SEND_RECEIVE = "send-receive";

  private static final String MESSAGES_BLOCK =
      "a message is matched by the host when it is received; call it outside the chain";

  private final ProcessGroup group;
  private final CollectiveEngine engine;
  private final @Nullable CollectiveWay way;
  private final int workers;
  private final @Nullable AllReduce algorithm;
  private final @Nullable CollectiveLog log;

  /// Receives the collectives, which then do not run; null by default.
  private final @Nullable List<CollectiveLink> recorded;

  private Collectives(
      ProcessGroup group,
      CollectiveEngine engine,
      @Nullable CollectiveWay way,
      int workers,
      @Nullable AllReduce algorithm,
      @Nullable CollectiveLog log,
      @Nullable List<CollectiveLink> recorded) {
    this.group = group;
    this.engine = engine;
    this.way = way;
    this.workers = workers;
    this.algorithm = algorithm;
    this.log = log;
    this.recorded = recorded;
  }

  /// Returns the group's collectives, by copy engines. All members call it together, and meet the
  /// first time.
  public static Collectives on(ProcessGroup group) {
    Given.check("group", group);
    group.checkMember();
    var engine = group.keep(CollectiveEngine.class, () -> new CollectiveEngine(setting(group)));
    engine.setUp();
    return new Collectives(group, engine, null, 0, null, null, null);
  }

  private static CollectiveGroup setting(ProcessGroup group) {
    var context = group.context();
    var backend = context.backend();
    return new CollectiveGroup(
        group.name(),
        group.place(),
        group.members(),
        backend,
        context.waits(),
        group.calls(),
        group.counting(),
        group.symmetric(context.memory(null, group.members())),
        group::rendezvous);
  }

  /// Returns these collectives over a transport; no rank waits for another. [#workers] is
  /// [Overlap#DEFAULT_WORKERS] by default.
  ///
  /// If it is a library, all members call it together, and meet the first time per library. Throws
  /// at once if the library is missing; a collective that the library lacks throws at its call.
  public Collectives over(Transport other) {
    Given.check("other", other);
    if (other.multiplies()) {
      throw new BraidException(
          "%s exchanges in multiplications only; call over(NCCL_KERNELS), or tune a pipeline by pipelined(1).over(CUBLASMP)"
              .formatted(other));
    }
    var collectives = with(CollectiveWay.of(other), "over");
    if (other.isLibrary()) {
      engine.setUp(other);
    }
    return collectives;
  }

  /// Returns these collectives by copy engines that write into the other ranks instead of fetching
  /// from them; no rank waits for another. Supports all-gather, all-to-all and broadcast.
  public Collectives pushing() {
    return with(CollectiveWay.PUSHING, "pushing");
  }

  private Collectives with(CollectiveWay other, String call) {
    if (way != null) {
      throw new BraidException(
          "%s was called but these collectives use %s already; call over or pushing, once"
              .formatted(call, way));
    }
    checkAlgorithm(other, algorithm);
    return new Collectives(group, engine, other, 0, algorithm, log, recorded);
  }

  /// Returns these collectives with that number of compute units per rank that communicate; only
  /// over [Transport#WORKERS].
  public Collectives workers(int count) {
    if (way != CollectiveWay.WORKERS) {
      throw new BraidException(
          "workers are for collectives over workers but these go over %s; call over(WORKERS) first"
              .formatted(route().way()));
    }
    if (workers != 0) {
      throw new BraidException("workers were set already: %d; set them once".formatted(workers));
    }
    if (count < 1 || count > Overlap.MAX_WORKERS) {
      throw new BraidException(
          "workers must be 1..%d but was %d; try workers(%d)"
              .formatted(Overlap.MAX_WORKERS, count, Overlap.DEFAULT_WORKERS));
    }
    return new Collectives(group, engine, way, count, algorithm, log, recorded);
  }

  /// Returns these collectives with all-reduces in one round: every rank adds all parts of all
  /// ranks. For all-reduces only, and not by a library, which chooses its own algorithm. In place
  /// it takes only small tensors, because a rank must fetch all data before it overwrites any.
  public Collectives oneShot() {
    return with(AllReduce.ONE_SHOT);
  }

  /// Returns these collectives with all-reduces in two rounds: every rank adds one part, and the
  /// others fetch the sum from it; the default.
  public Collectives twoShot() {
    return with(AllReduce.TWO_SHOT);
  }

  private Collectives with(AllReduce other) {
    if (algorithm != null) {
      throw new BraidException(
          "%s was chosen but these all-reduces are %s already; choose one of them, once"
              .formatted(other, algorithm));
    }
    checkAlgorithm(route().way(), other);
    return new Collectives(group, engine, way, workers, other, log, recorded);
  }

  private static void checkAlgorithm(CollectiveWay way, @Nullable AllReduce algorithm) {
    if (algorithm != null && way.library().isPresent()) {
      throw new BraidException(
          "%s is for all-reduces by copies but these go over %s, which chooses its own algorithm; call over(COPY_ENGINE) or over(WORKERS)"
              .formatted(algorithm, way));
    }
  }

  private AllReduce algorithm() {
    return algorithm == null ? AllReduce.TWO_SHOT : algorithm;
  }

  private CollectiveRoute route() {
    var chosen = way == null ? CollectiveWay.COPY_ENGINE : way;
    return new CollectiveRoute(
        chosen,
        chosen == CollectiveWay.WORKERS && workers == 0 ? Overlap.DEFAULT_WORKERS : workers);
  }

  /// Gathers all ranks' `x` into `y`, by rank.
  public void allGather(SymmetricTensor x, SymmetricTensor y) {
    var rules = rules(Collective.ALL_GATHER, x);
    rules.into(y, rules.timesRanks(), "the first size of x times the ranks");
    make(Collective.ALL_GATHER, x, y);
  }

  /// Returns the same in a new tensor, which the caller closes.
  public SymmetricTensor allGather(SymmetricTensor x) {
    var rules = rules(Collective.ALL_GATHER, x);
    return filled(rules, rules.timesRanks(), y -> allGather(x, y));
  }

  /// Writes this rank's part of the sum of all ranks' `x` into `y`.
  public void reduceScatter(SymmetricTensor x, SymmetricTensor y) {
    var rules = rules(Collective.REDUCE_SCATTER, x);
    rules.into(y, rules.dividedByRanks(), "the first size of x divided by the ranks");
    make(Collective.REDUCE_SCATTER, x, y);
  }

  /// Returns the same in a new tensor, which the caller closes.
  public SymmetricTensor reduceScatter(SymmetricTensor x) {
    var rules = rules(Collective.REDUCE_SCATTER, x);
    return filled(rules, rules.dividedByRanks(), y -> reduceScatter(x, y));
  }

  /// Writes the sum of all ranks' `x` into `y`, which may be `x` itself.
  public void allReduce(SymmetricTensor x, SymmetricTensor y) {
    var rules = rules(Collective.ALL_REDUCE, x);
    rules.into(y, x.shape(), "that of x");
    rules.roomFor(algorithm(), y);
    make(Collective.ALL_REDUCE, x, y);
  }

  /// Returns the same in a new tensor, which the caller closes; `allReduce(x, x)` works in place.
  public SymmetricTensor allReduce(SymmetricTensor x) {
    return filled(rules(Collective.ALL_REDUCE, x), x.shape(), y -> allReduce(x, y));
  }

  /// Writes the parts of all ranks' `x` that are for this rank into `y`, by rank.
  public void allToAll(SymmetricTensor x, SymmetricTensor y) {
    var rules = rules(Collective.ALL_TO_ALL, x);
    var _ = rules.dividedByRanks();
    rules.into(y, x.shape(), "that of x");
    rules.other(y);
    make(Collective.ALL_TO_ALL, x, y);
  }

  /// Returns the same in a new tensor, which the caller closes.
  public SymmetricTensor allToAll(SymmetricTensor x) {
    var rules = rules(Collective.ALL_TO_ALL, x);
    var _ = rules.dividedByRanks();
    return filled(rules, x.shape(), y -> allToAll(x, y));
  }

  /// Copies the root's `x` into `x` on every rank. Ranks wait for the root only, so a rank may
  /// learn only in its own next call that another rank called something else.
  public void broadcast(SymmetricTensor x, int root) {
    var rules = rules(Collective.BROADCAST, x);
    if (root < 0 || root >= group.size()) {
      throw new BraidException(
          "%s: the root must be 0..%d but was %d; give a rank of the group"
              .formatted(rules, group.size() - 1, root));
    }
    log(rules.name(), x, x.shape());
    make(
        new CollectiveCall(
            Collective.BROADCAST, route(), x.shared(), x.shared(), root, AllReduce.TWO_SHOT),
        group.rank() == root || route().way().library().isPresent(),
        () -> Call.of(rules.name(), "from rank %d, %s over %s".formatted(root, text(x), route())),
        List.of(x, x));
  }

  /// Waits until every rank has reached the barrier; by signals, without a meeting at the store.
  public void barrier() {
    group.checkMember();
    if (log != null) {
      log.add(Collective.BARRIER.toString());
    }
    make(
        CollectiveCall.barrier(route()),
        true,
        () -> Call.of(Collective.BARRIER.toString(), "of collectives over " + route()),
        List.of());
  }

  /// Sends `x` to a rank and waits until that rank has received it: then `x` may be overwritten.
  /// Messages between two ranks are matched in order; other ranks need not call. Ranks that all
  /// send first wait for each other, which is an error at once; use [#sendReceive] there. A message
  /// to the own rank is copied at once and kept until it is received.
  public void send(SymmetricTensor x, int toRank) {
    requireNotRecorded("send", MESSAGES_BLOCK);
    var rules = rules(Collective.SEND, x);
    var message = message(rules, x, toRank);
    log(SEND_RECEIVE, x, x.shape());
    engine.send(route(), message);
  }

  private CollectiveEngine.Message message(ShapeRules rules, SymmetricTensor x, int toRank) {
    return new CollectiveEngine.Message(header(x), peer(rules, toRank), x.shared());
  }

  /// Receives the next message of a rank into `y`. A message of another shape or type is an error
  /// on both ranks.
  public void receive(SymmetricTensor y, int fromRank) {
    requireNotRecorded("receive", MESSAGES_BLOCK);
    var landing = landing(rules(Collective.RECEIVE, y), y, fromRank);
    log(SEND_RECEIVE, y, y.shape());
    engine.receive(route(), landing);
  }

  /// Sends `x` to one rank and receives `y` from the same or another rank, at the same time: for
  /// rings, also of one rank.
  public void sendReceive(SymmetricTensor x, int toRank, SymmetricTensor y, int fromRank) {
    requireNotRecorded("sendReceive", MESSAGES_BLOCK);
    var rules = rules(Collective.SEND, "sendReceive", x);
    var message = message(rules, x, toRank);
    var landing = landing(rules(Collective.RECEIVE, "sendReceive", y), y, fromRank);
    rules.other(y);
    log(SEND_RECEIVE, x, x.shape());
    engine.sendReceive(route(), message, landing);
  }

  private CollectiveEngine.Landing landing(ShapeRules rules, SymmetricTensor y, int from) {
    return new CollectiveEngine.Landing(header(y), peer(rules, from), y.shared(), this::reach);
  }

  private Optional<ReachableTensor> reach(String identity) {
    return group.resources(SymmetricTensor.class).stream()
        .filter(tensor -> tensor.identity().equals(identity))
        .findFirst()
        .map(SymmetricTensor::shared);
  }

  private static MessageHeader header(SymmetricTensor x) {
    return new MessageHeader(
        x.identity(), x.dtype().toString(), TensorView.text(x.shape()), x.name());
  }

  private int peer(ShapeRules rules, int rank) {
    if (rank < 0 || rank >= group.size()) {
      throw new BraidException(
          "%s: the other rank must be 0..%d but was %d; give a rank of the group, such as (rank + 1) %% ranks"
              .formatted(rules, group.size() - 1, rank));
    }
    return rank;
  }

  /// Runs `body` that often and returns this rank's spans on the clock of the group's rank 0; the
  /// front gathers the profile too. All ranks call it together. `body` receives these collectives
  /// and calls those to be measured.
  public Profile profile(int iterations, Consumer<Collectives> body) {
    Given.check("body", body);
    group.checkMember();
    var record = new CollectiveLog(group, route());
    var logged = new Collectives(group, engine, way, workers, algorithm, record, null);
    var measurement =
        new Measurement(
            group,
            iteration -> {
              engine.iteration(iteration);
              body.accept(logged);
            });
    var lanes = List.of(new Measurement.Lanes("", streams()));
    return engine.profiling(() -> measurement.profile(iterations, lanes, record::configuration));
  }

  private List<Stream> streams() {
    return engine.streams(route());
  }

  private void make(Collective collective, SymmetricTensor x, SymmetricTensor y) {
    new ShapeRules(group, collective, x).available(route().way(), y);
    log(collective.toString(), x, y.shape());
    boolean sums = collective == Collective.ALL_REDUCE && route().way().library().isEmpty();
    if (sums && log != null) {
      log.add(algorithm());
    }
    make(
        new CollectiveCall(collective, route(), x.shared(), y.shared(), 0, algorithm()),
        true,
        () ->
            Call.of(
                collective.toString(),
                "%s to %s over %s%s"
                    .formatted(text(x), text(y), route(), sums ? ", " + algorithm() : "")),
        List.of(x, y));
  }

  private void make(
      CollectiveCall call,
      boolean needsAll,
      Supplier<Call> groupCall,
      List<SymmetricTensor> tensors) {
    if (recorded == null) {
      engine.make(call, needsAll, groupCall);
    } else {
      recorded.add(new CollectiveLink(group, engine, call, needsAll, groupCall.get(), tensors));
    }
  }

  /// Returns the collective that the body calls, as a link of a [Chain]; it does not run yet.
  ///
  /// ```java
  /// var layer = Chain.of(up, comm.link(c -> c.allReduce(hidden, hidden)), down);
  /// ```
  ///
  /// @param body calls one collective on its argument, into a tensor that exists
  public CollectiveLink link(Consumer<Collectives> body) {
    Given.check("body", body);
    group.checkMember();
    var links = new ArrayList<CollectiveLink>();
    body.accept(new Collectives(group, engine, way, workers, algorithm, null, links));
    return CollectiveLink.only(links);
  }

  /// Starts the collective that the body calls and returns at once. This rank works on meanwhile,
  /// and awaits it later; see [Running].
  public Running start(Consumer<Collectives> body) {
    return Chain.of(link(body)).start();
  }

  private void requireNotRecorded(String call, String remedy) {
    if (recorded != null) {
      throw new BraidException("%s cannot be a link; %s".formatted(call, remedy));
    }
  }

  private void log(String pattern, SymmetricTensor x, List<Long> result) {
    if (log != null) {
      log.add(pattern, x, result);
    }
  }

  private interface Filling {
    void fill(SymmetricTensor y);
  }

  private SymmetricTensor filled(ShapeRules rules, List<Long> shape, Filling filling) {
    requireNotRecorded("a collective into a new tensor", "allocate y and call it with x and y");
    var y =
        SymmetricTensor.on(group)
            .shape(shape.stream().mapToLong(Long::longValue).toArray())
            .dtype(rules.x().dtype())
            .memory(rules.x().kind())
            .name(rules.resultName())
            .allocate();
    try {
      filling.fill(y);
      return y;
    } catch (RuntimeException | Error e) {
      y.close();
      throw e;
    }
  }

  /// Identifies a tensor across ranks: all must pass the same tensor, not an equal one.
  private static String text(SymmetricTensor tensor) {
    return "`%s` %s %s (tensor %s)"
        .formatted(
            tensor.name(), TensorView.text(tensor.shape()), tensor.dtype(), tensor.identity());
  }

  private ShapeRules rules(Collective collective, SymmetricTensor x) {
    return rules(collective, collective.toString(), x);
  }

  private ShapeRules rules(Collective collective, String name, SymmetricTensor x) {
    Given.check(collective == Collective.RECEIVE ? "y" : "x", x);
    group.checkMember();
    var rules = new ShapeRules(group, collective, name, x);
    rules.usable(x);
    if (algorithm != null && collective != Collective.ALL_REDUCE) {
      throw new BraidException(
          "%s: %s is for all-reduces; set it for all-reduces only".formatted(rules, algorithm));
    }
    rules.available(route().way(), x);
    return rules;
  }
}
