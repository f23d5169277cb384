package braid;

import braid.internal.collective.CollectiveEngine;
import braid.internal.context.RankContext;
import braid.internal.memory.BufferPool;
import braid.internal.memory.Call;
import braid.internal.memory.Calls;
import braid.internal.memory.Counter;
import braid.internal.memory.Counters;
import braid.internal.memory.Members;
import braid.internal.rank.Closing;
import braid.internal.report.value.Caveats;
import braid.internal.resource.BufferRequest;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.internal.resource.SymmetricSource;
import braid.internal.store.Meeting;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.Host;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Place;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Ranks that work together. All members make the same calls on a group in the same order; a member
/// whose call differs gets an error that names the other rank and its call.
///
/// Closing a group closes all resources created on it, the latest first.
public final class ProcessGroup implements AutoCloseable {
  private static final int NOT_A_MEMBER = -1;

  /// Number of ranks that [#require] suggests, unless more are needed.
  private static final int SUGGESTED_RANKS = 4;

  private static final int GATHERED_AT_ONCE = Meeting.MAX_VALUE_BYTES / Float.BYTES;

  private final RankContext context;
  private final GroupRegistry registry;
  private final @Nullable ProcessGroup parent;
  private final String name;
  private final List<Integer> members;
  private final int rank;
  private final Members all;
  private final Deque<AutoCloseable> resources = new ArrayDeque<>();

  /// Iterations that may not have been awaited yet.
  private final List<Running> started = new ArrayList<>();

  private final Counters counters = new Counters();
  private final Calls calls;
  private final BufferPool pool;
  private int tensorsEpoch;
  private int tensors;
  private boolean closed;

  ProcessGroup(
      GroupRegistry registry, @Nullable ProcessGroup parent, String name, List<Integer> members) {
    this.parent = parent;
    this.context = registry.context();
    this.registry = registry;
    this.name = name;
    this.members = List.copyOf(members);
    this.rank = members.indexOf(context.place().rank());
    this.all = new Members(name, members, new Place(Math.max(rank, 0), members.size()));
    this.calls =
        new Calls(
            all,
            context.waits(),
            counters,
            context::backend,
            this::rendezvous,
            () -> registry.restartCount(this));
    this.pool =
        new BufferPool(all, context.waits(), calls, counters, context::backend, this::rendezvous);
  }

  /// Returns the group of all ranks.
  public static ProcessGroup world() {
    return GroupRegistry.current().world();
  }

  /// Returns the named group of some ranks of this group, numbered in ascending order. No rank
  /// waits for another, and ranks that are not members may call it too, but not use the group. A
  /// second call returns the same group.
  public ProcessGroup subset(String name, int... ranks) {
    Given.check("name", name);
    Given.check("ranks", ranks);
    checkOpen();
    return registry.subset(this, name, ranks);
  }

  public String name() {
    return name;
  }

  /// Returns this rank's number in the group.
  public int rank() {
    checkMember();
    return rank;
  }

  public int size() {
    return members.size();
  }

  public Place place() {
    return new Place(rank(), size());
  }

  /// Throws if the group has fewer ranks: for code that makes no sense with so few.
  public void require(int ranks) {
    if (size() < ranks) {
      var remedy =
          parent == null
              ? "try -n %1$d --share-gpus on one GPU, or -n %1$d --backend host"
                  .formatted(Math.max(ranks, SUGGESTED_RANKS))
              : "make it of more ranks";
      throw new BraidException(
          "this needs at least %d ranks but %s has %d%s; %s"
              .formatted(
                  ranks,
                  parent == null ? "the world" : "group `" + name + "`",
                  size(),
                  size() == 1 ? ": one rank has nothing to communicate" : "",
                  remedy));
    }
  }

  /// Returns true if the ranks use GPUs, false on the host backend: for defaults that fit either.
  public boolean onGpu() {
    return context.backend().kind() == BackendKind.CUDA;
  }

  /// Returns true if this rank is in the group.
  public boolean isMember() {
    return rank != NOT_A_MEMBER;
  }

  /// Returns the members' ranks in the world, by their rank in this group.
  public List<Integer> members() {
    return members;
  }

  /// Returns the hosts of the members, each with its ranks in this group. The first call waits
  /// until every rank of the world has started.
  public List<Host> hosts() {
    return context.hosts().members(members);
  }

  /// Returns the name of this rank's host; empty if all members are on one.
  Optional<String> hostIfSeveral() {
    return hosts().size() > 1 ? Optional.of(host(rank()).name()) : Optional.empty();
  }

  /// Returns the host of a member.
  Host host(int member) {
    return hosts().stream().filter(host -> host.ranks().contains(member)).findFirst().orElseThrow();
  }

  /// Adds the columns of measurements that describe the machine.
  void describeMachine(Map<String, String> columns) {
    var backend = context.backend();
    Caveats.put(backend.deviceName(), backend.ranksPerDevice(), hosts().size(), columns);
  }

  /// Returns the group of those members that are on this rank's host: `host0`, `host1`, in the
  /// order of [#hosts].
  public ProcessGroup local() {
    checkMember();
    var host = host(rank);
    return subset(
        "host" + hosts().indexOf(host),
        host.ranks().stream().mapToInt(Integer::intValue).toArray());
  }

  /// Waits until every member has reached the barrier.
  public void barrier() {
    var _ = exchange("barrier", new byte[0]);
  }

  /// Makes the host backend play that link between ranks from now on, regardless of `--link` and
  /// `BRAID_LINK`. All members call it together with the same link.
  public void playLink(Link link) {
    Given.check("link", link);
    var _ = exchange("playLink " + link, new byte[0]);
    context.backend().playLink(link);
  }

  /// Returns the root's value on every member.
  public byte[] broadcast(byte[] value, int root) {
    Given.check("value", value);
    return broadcast("bytes", value, root);
  }

  public String broadcast(String value, int root) {
    Given.check("value", value);
    return text(broadcast("a string", bytes(value), root));
  }

  public double broadcast(double value, int root) {
    return Double.longBitsToDouble(
        number(broadcast("a double", bytes(Double.doubleToRawLongBits(value)), root)));
  }

  public long broadcast(long value, int root) {
    return number(broadcast("a long", bytes(value), root));
  }

  /// Returns every member's value, by rank, on every member.
  public List<byte[]> gather(byte[] value) {
    Given.check("value", value);
    return exchange("gather of bytes", value);
  }

  public List<String> gather(String value) {
    Given.check("value", value);
    return exchange("gather of strings", bytes(value)).stream().map(ProcessGroup::text).toList();
  }

  public double[] gather(double value) {
    return exchange("gather of doubles", bytes(Double.doubleToRawLongBits(value))).stream()
        .mapToDouble(each -> Double.longBitsToDouble(number(each)))
        .toArray();
  }

  public long[] gather(long value) {
    return exchange("gather of longs", bytes(value)).stream()
        .mapToLong(ProcessGroup::number)
        .toArray();
  }

  /// Returns the numbers of every member's tensor, by rank, on every member. All tensors have one
  /// shape. The numbers travel through the host: use this to inspect and check, and [Collectives]
  /// for work.
  public List<float[]> gather(TensorView mine) {
    Given.check("mine", mine);
    return gather(
        "gather of a %s tensor".formatted(TensorView.text(mine.shape())), mine.toFloats());
  }

  /// Returns the numbers of every member, by rank, on every member. All have as many.
  List<float[]> gather(String subject, float[] own) {
    var all = IntStream.range(0, size()).mapToObj(_ -> new float[own.length]).toList();
    for (int index = 0; index < own.length; index += GATHERED_AT_ONCE) {
      int count = Math.min(GATHERED_AT_ONCE, own.length - index);
      var piece = ByteBuffer.allocate(count * Float.BYTES);
      piece.asFloatBuffer().put(own, index, count);
      var pieces = exchange(subject, piece.array());
      for (int rank = 0; rank < pieces.size(); rank++) {
        ByteBuffer.wrap(pieces.get(rank)).asFloatBuffer().get(all.get(rank), index, count);
      }
    }
    return all;
  }

  private byte[] broadcast(String type, byte[] value, int root) {
    checkMember();
    if (root < 0 || root >= size()) {
      throw new BraidException(
          "the root of a broadcast in group `%s` must be 0..%d but was %d"
              .formatted(name, size() - 1, root));
    }
    return exchange(
            "broadcast of %s from rank %d".formatted(type, root),
            rank == root ? value : new byte[0])
        .get(root);
  }

  private List<byte[]> exchange(String call, byte[] value) {
    checkMember();
    return calls.meet(Call.of(call), () -> meet(registry.next(this), call, value));
  }

  private List<byte[]> meet(String unique, String call, byte[] value) {
    counters.add(Counter.MEETINGS);
    return context.exchange(
        new Meeting(context.waits().epoch(), unique, all.in(call), members), value);
  }

  /// Requires that all members pass the same value; otherwise each of them throws an error that
  /// lists all values.
  void agree(String call, String value) {
    var values = exchange(call, bytes(value)).stream().map(ProcessGroup::text).toList();
    all.requireSame(call, values);
  }

  /// Returns a rendezvous for resources that the members set up together, in a call that each of
  /// them has announced.
  Rendezvous rendezvous() {
    checkMember();
    return new SetUp(registry.next(this));
  }

  private final class SetUp implements Rendezvous {
    private final String unique;
    private boolean met;

    SetUp(String unique) {
      this.unique = unique;
    }

    @Override
    public Place place() {
      return ProcessGroup.this.place();
    }

    @Override
    public List<Integer> ranks() {
      return members;
    }

    @Override
    public String unique() {
      return unique;
    }

    @Override
    public List<String> exchange(String label, String value) {
      // The set-up and its first meeting are one step; otherwise ranks that only meet would be one
      // step off.
      var key = met ? registry.next(ProcessGroup.this) : unique;
      met = true;
      return meet(key, label, bytes(value)).stream().map(ProcessGroup::text).toList();
    }
  }

  /// Returns counts by name: how often this rank met the others of this group, and allocated or
  /// reused memory and plans. Read it to find meetings in a loop: one whose `rendezvous` grows
  /// allocates where it could reuse.
  public SequencedMap<String, Long> counters() {
    return counters.snapshot();
  }

  /// Runs the code and returns the counts that it has raised, by name.
  public SequencedMap<String, Long> counters(Runnable code) {
    Given.check("code", code);
    var before = counters();
    code.run();
    var raised = new LinkedHashMap<>(counters());
    raised.replaceAll((name, count) -> count - before.getOrDefault(name, 0L));
    raised.values().removeIf(count -> count == 0);
    return raised;
  }

  /// Returns the counters themselves, to add to.
  Counters counting() {
    return counters;
  }

  /// Returns the members' announced calls, by which ranks notice that they call different things.
  Calls calls() {
    return calls;
  }

  /// Returns the pool of symmetric memory.
  BufferPool pool() {
    return pool;
  }

  /// Returns a source of symmetric memory for a resource of several buffers; the label carries
  /// everything that the ranks must agree on.
  SymmetricSource symmetric(MemoryKind kind) {
    return new SymmetricSource() {
      @Override
      public void grant(String label, List<BufferRequest> buffers, String remedy) {
        pool.grant(Call.of("grant", label), kind, buffers, remedy);
      }

      @Override
      public SymmetricMemory take(String label, long bytes) {
        return pool.take(
            Call.of("set up", "%s, %d bytes %s".formatted(label, bytes, kind)), kind, bytes);
      }
    };
  }

  /// Returns the group's single resource of that type, created at its first use and closed with the
  /// group.
  synchronized <T extends AutoCloseable> T keep(Class<T> type, Supplier<T> maker) {
    for (var resource : resources) {
      if (type.isInstance(resource)) {
        return type.cast(resource);
      }
    }
    var first = maker.get();
    own(first);
    return first;
  }

  /// Returns the identity of the next tensor, the same on all ranks. Every epoch restarts the
  /// count, since a failed cell may leave ranks at different counts.
  synchronized String nextTensor() {
    int current = context.waits().epoch();
    if (tensorsEpoch != current) {
      tensorsEpoch = current;
      tensors = 0;
    }
    return "%d.%d".formatted(tensorsEpoch, ++tensors);
  }

  /// Returns the open resources of that type on this group, the latest first.
  synchronized <T> List<T> resources(Class<T> type) {
    return resources.stream().filter(type::isInstance).map(type::cast).toList();
  }

  synchronized void started(Running running) {
    started.removeIf(Running::isOver);
    started.add(running);
  }

  /// Describes messages that were not received and iterations that were not awaited, each once.
  synchronized List<String> unfinished() {
    started.removeIf(Running::isOver);
    var texts = new ArrayList<String>();
    resources(CollectiveEngine.class).forEach(each -> texts.addAll(each.unreceivedMessages()));
    started.forEach(
        running ->
            texts.add(
                "rank %d of group `%s` has started %s and not awaited it; call await() on the result of start()"
                    .formatted(rank, name, running)));
    started.clear();
    return texts;
  }

  RankContext context() {
    return context;
  }

  /// Registers a resource, to close it with the group; the latest is closed first.
  synchronized void own(AutoCloseable resource) {
    checkOpen();
    resources.push(resource);
  }

  /// Forgets a resource that was closed before the group.
  synchronized void disown(AutoCloseable resource) {
    resources.remove(resource);
  }

  void checkMember() {
    checkOpen();
    if (!isMember()) {
      throw new BraidException(
          "group `%s` has ranks %s but this is rank %d; use it on its members only"
              .formatted(name, numbers(members), context.place().rank()));
    }
  }

  synchronized boolean isClosed() {
    return closed;
  }

  private synchronized void checkOpen() {
    if (closed) {
      throw new BraidException(
          "group `%s` is closed; get it again with %s"
              .formatted(name, name.equals("world") ? "ProcessGroup.world()" : "subset(...)"));
    }
  }

  /// Closes all resources of this group and frees its name. Closing twice is harmless, and no rank
  /// waits for another.
  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    registry.forget(this);
    if (parent != null) {
      parent.disown(this);
    }
    pool.retire();
    Closing.each(() -> Closing.all(this::pop), pool, calls);
  }

  private synchronized @Nullable AutoCloseable pop() {
    return resources.poll();
  }

  static String numbers(List<Integer> ranks) {
    return ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static byte[] bytes(long number) {
    return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
  }

  private static long number(byte[] bytes) {
    return ByteBuffer.wrap(bytes).getLong();
  }

  @Override
  public String toString() {
    return "group `%s` of ranks %s".formatted(name, numbers(members));
  }
}
