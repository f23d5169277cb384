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
import braid.model.CollectiveWay;
import braid.model.Library;
import braid.model.Overlap;
import braid.model.Profile;
import braid.model.Transport;
import braid.schedule.Collective;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Collectives by themselves, on symmetric tensors:
///
/// ```java
/// var comm = Collectives.on(world);   // or .over(WORKERS).workers(2), .pushing(), .by(NCCL)
/// comm.oneShot().allReduce(x, y);                   // for small tensors; or .twoShot(), the default
/// comm.allGather(x, y);                             // y is there already
/// try (var sum = comm.allReduce(x)) { ... }         // or is made, in symmetric memory
/// comm.sendReceive(x, next, y, previous);
/// var profile = comm.profile(50, c -> c.allGather(x, y));
/// ```
///
/// All ranks of the group make the same collectives in the same order, with the same tensors; who
/// makes another is told which. Sizes go by the first dimension:
///
/// | call | x | y |
/// |---|---|---|
/// | `allGather(x, y)` | a, ... | ranks · a, ...: all ranks' `x`, one after the other |
/// | `reduceScatter(x, y)` | ranks · a, ... | a, ...: this rank's part of the sum of all `x` |
/// | `allReduce(x, y)` | a, ... | a, ...: the sum of all `x`; `allReduce(x, x)` makes it in place |
/// | `allToAll(x, y)` | ranks · a, ... | ranks · a, ...: what each rank had for this one |
/// | `broadcast(x, root)` | a, ... | the root's `x`, in everybody's |
/// | `send(x, rank)`, `receive(y, rank)` | a, ... | a, ...: only these two ranks call |
///
/// **When a call returns** its result is there on this rank, and every other rank has read what it
/// needs of this one, so `x` may be written again; `y` is this rank's alone. It says nothing of
/// what is there on other ranks: who reads their parts makes a barrier before. By a library the
/// same holds, as far as the library keeps it: this rank's part of the call is over, and nothing
/// reads its `x` any more.
///
/// Sums are added in fp32 in the order of the ranks and rounded once to the type, so every rank and
/// every transport gets the same bits. NCCL adds in its own order and rounds in between: the same
/// on all ranks, but not the same bits.
///
/// Each rank fetches what it needs out of the others' memory, or [#pushing] writes what it brings
/// into theirs, or a library does what it does; always on streams of the group's own, and nothing
/// is copied on the caller's thread. The ranks meet once, when they first ask for a group's
/// collectives, and once for each library; never for a call, but for the first after a failure.
/// What is set up lives as long as the group.
public final class Collectives {
  private static final String SEND_RECEIVE = "send-receive";

  private final ProcessGroup group;
  private final CollectiveEngine commons;
  private final @Nullable CollectiveWay way;
  private final int workers;
  private final @Nullable AllReduce algorithm;
  private final @Nullable CollectiveLog log;

  private Collectives(
      ProcessGroup group,
      CollectiveEngine commons,
      @Nullable CollectiveWay way,
      int workers,
      @Nullable AllReduce algorithm,
      @Nullable CollectiveLog log) {
    this.group = group;
    this.commons = commons;
    this.way = way;
    this.workers = workers;
    this.algorithm = algorithm;
    this.log = log;
  }

  /// The collectives of that group, by copy engines. All its members ask for them together, and
  /// meet if they have not before.
  public static Collectives on(ProcessGroup group) {
    group.checkMember();
    var commons = group.keep(CollectiveEngine.class, () -> new CollectiveEngine(setting(group)));
    commons.setUp();
    return new Collectives(group, commons, null, 0, null, null);
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
        group.symmetric(backend.resolve(context.memory())),
        group::rendezvous);
  }

  /// The same over that transport; no rank waits for another. Workers are [Overlap#DEFAULT_WORKERS]
  /// until [#workers] says another number.
  public Collectives over(Transport other) {
    return with(CollectiveWay.of(other), "over");
  }

  /// The same by copy engines that write into the other ranks instead of fetching from them; no
  /// rank waits for another. There is all-gather, all-to-all and broadcast.
  public Collectives pushing() {
    return with(CollectiveWay.PUSHING, "pushing");
  }

  /// The same made by that library. All members ask together, and meet if they have not for it; one
  /// that cannot be had is an error at once, what it has none of an error of the call.
  public Collectives by(Library library) {
    var made = with(CollectiveWay.of(library), "by");
    commons.setUp(library);
    return made;
  }

  private Collectives with(CollectiveWay other, String said) {
    if (way != null) {
      throw new BraidException(
          "%s was to be said but these collectives go %s already; say one of over, pushing and by, once"
              .formatted(said, way));
    }
    checkAlgorithm(other, algorithm);
    return new Collectives(group, commons, other, 0, algorithm, log);
  }

  /// The same with so many compute units that communicate; only over [Transport#WORKERS].
  public Collectives workers(int count) {
    if (way != CollectiveWay.WORKERS) {
      throw new BraidException(
          "workers are for collectives over workers but these go over %s; say over(WORKERS) first"
              .formatted(over().way()));
    }
    if (workers != 0) {
      throw new BraidException("workers were said already: %d; say them once".formatted(workers));
    }
    if (count < 1 || count > Overlap.MAX_WORKERS) {
      throw new BraidException(
          "workers must be 1..%d but was %d; try workers(%d)"
              .formatted(Overlap.MAX_WORKERS, count, Overlap.DEFAULT_WORKERS));
    }
    return new Collectives(group, commons, way, count, algorithm, log);
  }

  /// The same with all-reduces in one round: every rank adds up everything. Nothing but
  /// all-reduces, and not by a library, which chooses by itself. In place it takes small tensors
  /// only, because all of it must be fetched before any is overwritten.
  public Collectives oneShot() {
    return with(AllReduce.ONE_SHOT);
  }

  /// The same with all-reduces in two rounds: every rank adds up its part, and the others fetch it
  /// there; the default.
  public Collectives twoShot() {
    return with(AllReduce.TWO_SHOT);
  }

  private Collectives with(AllReduce other) {
    if (algorithm != null) {
      throw new BraidException(
          "%s was to be said but these all-reduces are %s already; say one of them, once"
              .formatted(other, algorithm));
    }
    checkAlgorithm(over().way(), other);
    return new Collectives(group, commons, way, workers, other, log);
  }

  private static void checkAlgorithm(CollectiveWay way, @Nullable AllReduce algorithm) {
    if (algorithm != null && way.library().isPresent()) {
      throw new BraidException(
          "%s is for all-reduces by copies but these go by %s, which chooses by itself; say over(COPY_ENGINE) or over(WORKERS)"
              .formatted(algorithm, way));
    }
  }

  private AllReduce algorithm() {
    return algorithm == null ? AllReduce.TWO_SHOT : algorithm;
  }

  private CollectiveRoute over() {
    var chosen = way == null ? CollectiveWay.COPY_ENGINE : way;
    return new CollectiveRoute(
        chosen,
        chosen == CollectiveWay.WORKERS && workers == 0 ? Overlap.DEFAULT_WORKERS : workers);
  }

  /// All ranks' `x`, one after the other, in `y`.
  public void allGather(SymmetricTensor x, SymmetricTensor y) {
    var fit = fit("all-gather", x);
    fit.into(y, fit.timesRanks(), "the first size of x times the ranks");
    make(Collective.ALL_GATHER, x, y);
  }

  /// The same in a new tensor, which the caller closes.
  public SymmetricTensor allGather(SymmetricTensor x) {
    var fit = fit("all-gather", x);
    return filled(fit, fit.timesRanks(), y -> allGather(x, y));
  }

  /// This rank's part of the sum of all ranks' `x`, in `y`.
  public void reduceScatter(SymmetricTensor x, SymmetricTensor y) {
    var fit = fit("reduce-scatter", x);
    fit.into(y, fit.dividedByRanks(), "the first size of x divided by the ranks");
    make(Collective.REDUCE_SCATTER, x, y);
  }

  /// The same in a new tensor, which the caller closes.
  public SymmetricTensor reduceScatter(SymmetricTensor x) {
    var fit = fit("reduce-scatter", x);
    return filled(fit, fit.dividedByRanks(), y -> reduceScatter(x, y));
  }

  /// The sum of all ranks' `x`, in `y`, which may be `x` itself.
  public void allReduce(SymmetricTensor x, SymmetricTensor y) {
    var fit = fit("all-reduce", x);
    fit.into(y, x.shape(), "that of x");
    fit.roomFor(algorithm(), y);
    make(Collective.ALL_REDUCE, x, y);
  }

  /// The same in a new tensor, which the caller closes; `allReduce(x, x)` makes it in place.
  public SymmetricTensor allReduce(SymmetricTensor x) {
    return filled(fit("all-reduce", x), x.shape(), y -> allReduce(x, y));
  }

  /// The parts of all ranks' `x` that are for this rank, by rank, in `y`.
  public void allToAll(SymmetricTensor x, SymmetricTensor y) {
    var fit = fit("all-to-all", x);
    var _ = fit.dividedByRanks();
    fit.into(y, x.shape(), "that of x");
    fit.other(y);
    make(Collective.ALL_TO_ALL, x, y);
  }

  /// The same in a new tensor, which the caller closes.
  public SymmetricTensor allToAll(SymmetricTensor x) {
    var fit = fit("all-to-all", x);
    var _ = fit.dividedByRanks();
    return filled(fit, x.shape(), y -> allToAll(x, y));
  }

  /// The root's `x`, in everybody's. A rank that is not the root waits for the root alone, and so
  /// may hear only in its next call that another made something else.
  public void broadcast(SymmetricTensor x, int root) {
    var fit = fit("broadcast", x);
    if (root < 0 || root >= group.size()) {
      throw new BraidException(
          "%s: the root must be 0..%d but was %d; give a rank of the group"
              .formatted(fit, group.size() - 1, root));
    }
    log(fit.name(), x, x.shape());
    commons.make(
        new CollectiveCall(
            Collective.BROADCAST, over(), x.shared(), x.shared(), root, AllReduce.TWO_SHOT),
        group.rank() == root || over().way().library().isPresent(),
        () -> Call.of(fit.name(), "from rank %d, %s over %s".formatted(root, text(x), over())));
  }

  /// Waits until every rank has come here; by signals, without a meeting at the store.
  public void barrier() {
    group.checkMember();
    if (log != null) {
      log.add("barrier");
    }
    commons.make(
        CollectiveCall.barrier(over()),
        true,
        () -> Call.of("barrier", "of collectives over " + over()));
  }

  /// Sends `x` to that rank, and waits until it has received it: then `x` may be written again.
  /// Messages of a pair of ranks are matched in their order; other ranks need not call. Ranks that
  /// all send first wait for each other, which is an error at once: they say [#sendReceive]. What a
  /// rank sends to itself is copied at once and kept until it receives it.
  public void send(SymmetricTensor x, int toRank) {
    var fit = fit("send", x);
    var message = message(fit, x, toRank);
    log(SEND_RECEIVE, x, x.shape());
    commons.send(over(), message);
  }

  private CollectiveEngine.Message message(ShapeRules fit, SymmetricTensor x, int toRank) {
    return new CollectiveEngine.Message(letter(x), peer(fit, toRank), x.shared());
  }

  /// Waits for what that rank sends to this one next, in `y`, which has its shape and type; what
  /// does not fit is an error on both ranks.
  public void receive(SymmetricTensor y, int fromRank) {
    var landing = landing(fit("receive", y), y, fromRank);
    log(SEND_RECEIVE, y, y.shape());
    commons.receive(over(), landing);
  }

  /// Sends `x` to one rank and receives `y` from another, or the same, at once: for rings, also of
  /// one rank.
  public void sendReceive(SymmetricTensor x, int toRank, SymmetricTensor y, int fromRank) {
    var fit = fit("sendReceive", x);
    var message = message(fit, x, toRank);
    var landing = landing(fit("sendReceive", y), y, fromRank);
    fit.other(y);
    log(SEND_RECEIVE, x, x.shape());
    commons.sendReceive(over(), message, landing);
  }

  private CollectiveEngine.Landing landing(ShapeRules fit, SymmetricTensor y, int from) {
    return new CollectiveEngine.Landing(letter(y), peer(fit, from), y.shared(), this::reach);
  }

  private Optional<ReachableTensor> reach(String identity) {
    return group.made(SymmetricTensor.class).stream()
        .filter(tensor -> tensor.identity().equals(identity))
        .findFirst()
        .map(SymmetricTensor::shared);
  }

  private static MessageHeader letter(SymmetricTensor x) {
    return new MessageHeader(x.identity(), x.dtype().toString(), Tensor.text(x.shape()), x.name());
  }

  private int peer(ShapeRules fit, int rank) {
    if (rank < 0 || rank >= group.size()) {
      throw new BraidException(
          "%s: the other rank must be 0..%d but was %d; give a rank of the group, such as (rank + 1) %% ranks"
              .formatted(fit, group.size() - 1, rank));
    }
    return rank;
  }

  /// Makes collectives that often and says what this rank did, span by span, on the clock of the
  /// group's rank 0; the front gathers it too. All ranks call it together. `body` is given these
  /// collectives and makes with them what is to be measured.
  public Profile profile(int iterations, Consumer<Collectives> body) {
    group.checkMember();
    var made = new CollectiveLog(group, over());
    var logged = new Collectives(group, commons, way, workers, algorithm, made);
    var measurement =
        new Measurement(
            group,
            iteration -> {
              commons.iteration(iteration);
              body.accept(logged);
            });
    try {
      return measurement.profile(
          iterations, List.of(new Measurement.Lanes("", streams())), made::configuration);
    } finally {
      commons.iteration(0);
    }
  }

  private List<Stream> streams() {
    return commons.streams(over());
  }

  private void make(Collective collective, SymmetricTensor x, SymmetricTensor y) {
    var name = collective.toString();
    new ShapeRules(group, name, x).available(over().way(), y);
    log(name, x, y.shape());
    boolean sums = collective == Collective.ALL_REDUCE && over().way().library().isEmpty();
    if (sums && log != null) {
      log.add(algorithm());
    }
    commons.make(
        new CollectiveCall(collective, over(), x.shared(), y.shared(), 0, algorithm()),
        true,
        () ->
            Call.of(
                name,
                "%s to %s over %s%s"
                    .formatted(text(x), text(y), over(), sums ? ", " + algorithm() : "")));
  }

  private void log(String pattern, SymmetricTensor x, List<Long> result) {
    if (log != null) {
      log.add(pattern, x, result);
    }
  }

  private interface Filling {
    void fill(SymmetricTensor y);
  }

  private SymmetricTensor filled(ShapeRules fit, List<Long> shape, Filling filling) {
    var y =
        SymmetricTensor.on(group)
            .shape(shape.stream().mapToLong(Long::longValue).toArray())
            .dtype(fit.x().dtype())
            .memory(fit.x().kind())
            .name(fit.resultName())
            .allocate();
    try {
      filling.fill(y);
      return y;
    } catch (RuntimeException | Error e) {
      y.close();
      throw e;
    }
  }

  /// What ranks must agree about: the same tensors, not only equal ones.
  private static String text(SymmetricTensor of) {
    return "`%s` %s %s (tensor %s)"
        .formatted(of.name(), Tensor.text(of.shape()), of.dtype(), of.identity());
  }

  private ShapeRules fit(String name, SymmetricTensor x) {
    group.checkMember();
    var fit = new ShapeRules(group, name, x);
    fit.usable(x);
    if (algorithm != null && !name.equals(Collective.ALL_REDUCE.toString())) {
      throw new BraidException(
          "%s: %s is for all-reduces; say it for those alone".formatted(fit, algorithm));
    }
    fit.available(over().way(), x);
    return fit;
  }
}
