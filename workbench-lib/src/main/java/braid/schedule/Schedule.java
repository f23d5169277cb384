package braid.schedule;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.Displayable;
import braid.model.MimeBundle;
import braid.model.Problem;
import braid.model.Tuning;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/// One iteration of an exchange among ranks: the buffers, flags and lanes that every rank has, and
/// the steps of every rank. Immutable, independent of the backend, and repeatable.
///
/// The steps of a lane run in order, a [Step.Mark] before its [Step.After], a [Step.Signal] before
/// its [Step.Wait]; all other steps are unordered. A rank's iteration ends when all its lanes have
/// ended, and its next one begins after that. Between the two the caller may write given ports and
/// read the others.
public final class Schedule implements Displayable {
  /// Largest number of ranks that a timeline draws.
  public static final int DRAWN_RANKS = 8;

  /// Largest number of lines in an exception of [#check].
  public static final int MOST_LINES = 20;

  private final Goal goal;
  private final String name;
  private final boolean replayed;
  private final int ranks;
  private final List<Buffer> buffers;
  private final List<Flag> flags;
  private final List<Lane> lanes;
  private final List<Port> ports;
  private final IntFunction<List<Step>> planner;
  private final AtomicReferenceArray<List<Step>> steps;

  private Schedule(Builder declared, IntFunction<List<Step>> planner) {
    this.goal = declared.goal;
    this.name = declared.name;
    this.replayed = declared.replayed;
    this.ranks = declared.ranks;
    this.buffers = List.copyOf(declared.buffers);
    this.flags = List.copyOf(declared.flags);
    this.lanes = List.copyOf(declared.lanes);
    this.ports = List.copyOf(declared.ports);
    this.planner = planner;
    this.steps = new AtomicReferenceArray<>(ranks);
  }

  /// The planners, the check, the drawings and the JSON of schedules. They are in packages above
  /// this one, which imports none of them and loads them by name.
  public interface Tools {
    Schedule plan(Problem problem, Tuning tuning, int ranks);

    Schedule ordered(Builder declared, int ranks, IntFunction<Program> programs);

    List<String> findings(Schedule schedule);

    String timeline(Schedule schedule);

    String timeline(Schedule schedule, int rank);

    MimeBundle display(Schedule schedule);

    String toJson(Schedule schedule);

    Schedule fromJson(String json);
  }

  private static final class Loaded {
    static final Tools TOOLS = tools("braid.internal.schedule.ScheduleTools");

    private static Tools tools(String name) {
      try {
        return Class.forName(name).asSubclass(Tools.class).getConstructor().newInstance();
      } catch (ReflectiveOperationException e) {
        throw new LinkageError("the class %s of this library is missing".formatted(name), e);
      }
    }
  }

  /// Predicts runs of schedules, such as [braid.schedule.simulation.Machine].
  ///
  /// @param <R> the prediction
  public interface Simulator<R> {
    R simulate(Schedule schedule, int iterations);
  }

  /// Returns the schedule of a problem and its tuning.
  public static Schedule of(Problem problem, Tuning tuning, int ranks) {
    return Loaded.TOOLS.plan(problem, tuning, ranks);
  }

  /// Begins a schedule of your own.
  public static Builder on(String name, int ranks) {
    return new Builder(new Goal.Unstated(name), ranks);
  }

  /// Begins a schedule of your own for a problem.
  public static Builder on(Problem problem, int ranks) {
    return new Builder(new Goal.Solution(problem, Optional.empty()), ranks);
  }

  /// Begins a schedule for a goal.
  public static Builder on(Goal goal, int ranks) {
    return new Builder(goal, ranks);
  }

  /// Collects buffers, flags, lanes and ports, and then the steps.
  public static final class Builder {
    private final Goal goal;
    private final int ranks;
    private final List<Buffer> buffers = new ArrayList<>();
    private final List<Flag> flags = new ArrayList<>();
    private final List<Lane> lanes = new ArrayList<>();
    private final List<Port> ports = new ArrayList<>();
    private final Map<Lane, Lane> announcers = new HashMap<>();
    private Optional<Set<String>> rotated = Optional.empty();
    private String name = "";
    private boolean replayed;

    private Builder(Goal goal, int ranks) {
      if (ranks < 1) {
        throw new BraidException("a schedule must have 1 or more ranks but has " + ranks);
      }
      this.goal = goal;
      this.ranks = ranks;
    }

    /// Adds a buffer of one shape on all ranks, private to each rank.
    public Buffer local(String name, DType dtype, long rows, long columns) {
      return add(Buffer.of(name, dtype, ranks, rows, columns, false));
    }

    /// Adds a buffer of one shape on all ranks, accessible to all of them.
    public Buffer symmetric(String name, DType dtype, long rows, long columns) {
      return add(Buffer.of(name, dtype, ranks, rows, columns, true));
    }

    /// Adds a part of the problem, private to each rank: a buffer of its shape, and its port.
    public Buffer local(Part part) {
      return part(part, false);
    }

    /// Adds a part of the problem, accessible to all ranks: a buffer of its shape, and its port.
    public Buffer symmetric(Part part) {
      return part(part, true);
    }

    private Buffer part(Part part, boolean symmetric) {
      if (!(goal instanceof Goal.Solution(var problem, var _))) {
        throw new BraidException(
            "%s is a part of a problem but `%s` has none; begin it with Schedule.on(spec, ranks)"
                .formatted(part, goal));
      }
      var buffer = add(part.buffer(problem, ranks, symmetric));
      port(part.port(), part.given(problem), buffer::on);
      return buffer;
    }

    /// Adds a buffer with one shape per rank.
    public Buffer add(Buffer buffer) {
      if (buffer.shapes().size() != ranks) {
        throw new BraidException(
            "`%s` must have a shape for each of %d ranks but has %d"
                .formatted(buffer, ranks, buffer.shapes().size()));
      }
      named("buffer", buffer.name(), buffers.stream().map(Buffer::name).toList());
      buffers.add(buffer);
      return buffer;
    }

    public Flag flag(String name, int words) {
      named("flag", name, flags.stream().map(Flag::name).toList());
      var flag = new Flag(name, words);
      flags.add(flag);
      return flag;
    }

    public Lane lane(String name, Lane.Role role) {
      return add(Lane.of(name, role));
    }

    public Lane add(Lane lane) {
      named("lane", lane.name(), lanes.stream().map(Lane::name).toList());
      lanes.add(lane);
      return lane;
    }

    /// Adds a port of regions, by rank, that the caller writes before an iteration.
    public Builder given(String name, IntFunction<Region> regions) {
      return port(name, true, regions);
    }

    /// Adds a port of regions, by rank, that an iteration writes for the caller.
    public Builder made(String name, IntFunction<Region> regions) {
      return port(name, false, regions);
    }

    private Builder port(String name, boolean given, IntFunction<Region> regions) {
      named("port", name, ports.stream().map(Port::name).toList());
      ports.add(new Port(name, given, IntStream.range(0, ranks).mapToObj(regions).toList()));
      return this;
    }

    private static void named(String kind, String name, List<String> others) {
      if (name.isBlank()) {
        throw new BraidException(
            "a %s needs a name but has none; give it one, such as %s".formatted(kind, kind));
      }
      if (new HashSet<>(others).contains(name)) {
        throw new BraidException(
            "%s `%s` exists already; choose another name".formatted(kind, name));
      }
    }

    /// Builds the schedule with finished steps, by rank.
    public Schedule stepsByRank(IntFunction<List<Step>> steps) {
      return new Schedule(this, steps);
    }

    public List<Lane> lanes() {
      return List.copyOf(lanes);
    }

    public List<Flag> flags() {
      return List.copyOf(flags);
    }

    /// Lets a lane raise the signals after the steps of another one, whose next step then begins
    /// earlier. Applies to [#ordered].
    public Builder announces(Lane announcer, Lane lane) {
      announcers.put(lane, announcer);
      return this;
    }

    /// Returns the lane that raises the signals after the steps of a lane; by default itself.
    public Lane announcer(Lane lane) {
      return announcers.getOrDefault(lane, lane);
    }

    /// States that all ranks do the same, relative to their numbers: rank r does what rank 0 does,
    /// with r added to each rank. In buffers that are divided evenly by rank, r parts are also
    /// added to the rows that a step uses on other ranks. [#ordered] then plans from the steps of
    /// rank 0.
    ///
    /// ```java
    /// plan.rotates();        // fetches input.on(peer)
    /// plan.rotates(inbox);   // sends to inbox.on(peer, part(me))
    /// ```
    public Builder rotates(Buffer... divided) {
      rotated = Optional.of(Stream.of(divided).map(Buffer::name).collect(Collectors.toSet()));
      return this;
    }

    /// Returns the names of the buffers that [#rotates] states; empty if it was not called.
    public Optional<Set<String>> rotated() {
      return rotated;
    }

    /// Builds the schedule from steps that move data and compute, without synchronization: adds the
    /// signals, waits and marks that their accesses require. Steps of one rank that use the same
    /// rows happen in the order of its program, a read of rows that another rank writes after the
    /// write; see [Program#round] for rows that are written several times. Also honors signals and
    /// marks that the planner states itself.
    ///
    /// ```java
    /// var own = plan.ordered(p -> {
    ///   int me = p.rank();
    ///   p.copy(comm, peer, input.on(peer), fetched.on(me));
    ///   p.gemm(math, peer, fetched.on(me), weight.on(me), output.on(me)); // waits for the copy
    /// });
    /// ```
    ///
    /// The planner runs at least once per rank and appends the same steps each time. The check does
    /// not rely on how signals were added: see [Schedule#check].
    public Schedule ordered(Consumer<Program> planner) {
      return Loaded.TOOLS.ordered(
          this,
          ranks,
          rank -> {
            var program = new Program(rank, ranks);
            planner.accept(program);
            return program;
          });
    }

    /// Builds the schedule with the steps of every rank. The planner runs once per rank, on first
    /// use.
    public Schedule steps(Consumer<Program> planner) {
      return new Schedule(
          this,
          rank -> {
            var program = new Program(rank, ranks);
            planner.accept(program);
            return program.steps();
          });
    }
  }

  public Goal goal() {
    return goal;
  }

  /// Returns the name that [#named] gave; empty by default.
  public String name() {
    return name;
  }

  /// Returns whether an iteration is recorded once and replayed.
  public boolean replayed() {
    return replayed;
  }

  /// Returns this schedule under a name, which tables, charts and messages show.
  public Schedule named(String label) {
    if (label == null || label.isBlank()) {
      throw new BraidException(
          "a schedule's name must not be blank but was `%s`; try named(\"two levels\")"
              .formatted(label));
    }
    var same = declared();
    same.name = label;
    return new Schedule(same, this::steps);
  }

  /// Returns this schedule with iterations that are recorded once and replayed: as a graph if the
  /// backend has graphs. Tunings have their own `replay()`.
  public Schedule replay() {
    var same = declared();
    same.replayed = true;
    return new Schedule(same, this::steps);
  }

  /// Returns a builder with the declarations of this schedule, without its ports.
  public Builder withoutPorts() {
    var same = new Builder(goal, ranks);
    same.name = name;
    same.replayed = replayed;
    same.buffers.addAll(buffers);
    same.flags.addAll(flags);
    same.lanes.addAll(lanes);
    return same;
  }

  private Builder declared() {
    var same = withoutPorts();
    same.ports.addAll(ports);
    return same;
  }

  public int ranks() {
    return ranks;
  }

  public List<Buffer> buffers() {
    return buffers;
  }

  public List<Flag> flags() {
    return flags;
  }

  public List<Lane> lanes() {
    return lanes;
  }

  public List<Port> ports() {
    return ports;
  }

  public Optional<Port> port(String name) {
    return ports.stream().filter(port -> port.name().equals(name)).findFirst();
  }

  /// Returns the steps of a rank, in the order in which it enqueues them on its lanes.
  public List<Step> steps(int rank) {
    var cached = steps.get(rank);
    if (cached == null) {
      cached = planner.apply(rank);
      steps.set(rank, cached);
    }
    return cached;
  }

  /// Returns the steps of a rank without caching them: the steps of all ranks of a large schedule
  /// take much memory.
  public List<Step> stepsUncached(int rank) {
    var cached = steps.get(rank);
    return cached == null ? planner.apply(rank) : cached;
  }

  /// Predicts one iteration of all ranks on a machine, without running it: see
  /// [#simulate(Simulator, int)].
  public <R> R simulate(Simulator<R> machine) {
    return simulate(machine, 1);
  }

  /// Predicts consecutive iterations of all ranks on a machine, as a pipeline's profile shows them.
  /// Deterministic: the same schedule and machine return the same times.
  public <R> R simulate(Simulator<R> machine, int iterations) {
    return machine.simulate(this, iterations);
  }

  /// Returns this schedule with other steps on one rank, for mutation tests.
  public Schedule with(int rank, List<Step> other) {
    return new Schedule(declared(), each -> each == rank ? List.copyOf(other) : steps(each));
  }

  /// Returns this schedule without the steps of one rank that match, to see what the check finds.
  public Schedule without(int rank, Predicate<Step> left) {
    return with(rank, steps(rank).stream().filter(left.negate()).toList());
  }

  /// Returns the mistakes in it, one line for each cause; empty for a schedule that is correct on
  /// every machine. A line names the first place, and counts others that differ only in rank,
  /// iteration, chunk or the second step. Mistakes of all kinds are reported together: steps that
  /// do not match, deadlocks, races and wrong outputs; but not those that follow from another one.
  public List<String> findings() {
    return Loaded.TOOLS.findings(this);
  }

  /// Throws a [BraidException] of the first [#MOST_LINES] of [#findings] if there are any.
  public void check() {
    var found = findings();
    if (found.isEmpty()) {
      return;
    }
    var lines = String.join("\n", found.subList(0, Math.min(found.size(), MOST_LINES)));
    throw new BraidException(
        this
            + ": "
            + (found.size() == 1 ? "" : found.size() + " mistakes\n")
            + lines
            + (found.size() > MOST_LINES ? "\n..." : ""));
  }

  /// Returns the schedule as JSON, with the steps of every rank; [#fromJson] reads it.
  public String toJson() {
    return Loaded.TOOLS.toJson(this);
  }

  /// Reads a schedule that [#toJson] wrote. It is not checked before it runs.
  public static Schedule fromJson(String json) {
    return Loaded.TOOLS.fromJson(json);
  }

  /// Returns a checksum, which differs, in all likelihood, between schedules that are not equal.
  public String fingerprint() {
    var sum = new CRC32C();
    buffers.forEach(
        each -> add(sum, each, each.dtype(), each.shapes(), each.symmetric(), each.transposed()));
    flags.forEach(each -> add(sum, each, each.words()));
    lanes.forEach(
        each ->
            add(
                sum,
                each,
                each.role(),
                each.yielding(),
                each.transport(),
                each.workers(),
                each.reserved()));
    add(sum, goal, ranks, ports);
    for (int rank = 0; rank < ranks; rank++) {
      add(sum, steps(rank).toArray());
    }
    return "%08x".formatted(sum.getValue());
  }

  private static void add(CRC32C sum, Object... values) {
    for (var value : values) {
      sum.update(value.toString().getBytes(StandardCharsets.UTF_8));
      sum.update(0);
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Schedule schedule
        && goal.equals(schedule.goal)
        && name.equals(schedule.name)
        && replayed == schedule.replayed
        && ranks == schedule.ranks
        && buffers.equals(schedule.buffers)
        && flags.equals(schedule.flags)
        && lanes.equals(schedule.lanes)
        && ports.equals(schedule.ports)
        && IntStream.range(0, ranks).allMatch(rank -> steps(rank).equals(schedule.steps(rank)));
  }

  @Override
  public int hashCode() {
    return Objects.hash(goal.toString(), ranks, lanes);
  }

  /// Draws the order of the steps of all ranks as text: one row per lane, time to the right. Only
  /// the first [#DRAWN_RANKS] ranks are drawn.
  public String timeline() {
    return Loaded.TOOLS.timeline(this);
  }

  /// Draws the order of one rank's steps as text.
  public String timeline(int rank) {
    return Loaded.TOOLS.timeline(this, rank);
  }

  /// Returns the timeline, as text and as a picture.
  @Override
  public MimeBundle display() {
    return Loaded.TOOLS.display(this);
  }

  @Override
  public String toString() {
    return "%s%s, %d ranks".formatted(name.isEmpty() ? "" : name + ": ", goal, ranks);
  }
}
