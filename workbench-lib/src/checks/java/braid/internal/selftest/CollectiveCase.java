package braid.internal.selftest;

import braid.Capabilities;
import braid.Collectives;
import braid.ProcessGroup;
import braid.SymmetricTensor;
import braid.model.AllReduce;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.DType;
import braid.model.Place;
import braid.model.Transport;
import braid.natives.kernels.Integers;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// One collective in one type, size and route, compared with plain loops over the same integers to
/// the last bit.
///
/// @param rows rows of each rank's part: the smaller of the two tensors
public record CollectiveCase(Operation operation, DType dtype, Route route, int rows, int columns)
    implements TabledCase {
  /// Collectives, with their algorithms and patterns of messages.
  public enum Operation {
    ALL_GATHER(Collective.ALL_GATHER),
    REDUCE_SCATTER(Collective.REDUCE_SCATTER),
    ALL_REDUCE(Collective.ALL_REDUCE),
    ALL_REDUCE_IN_PLACE(Collective.ALL_REDUCE),
    ONE_SHOT(Collective.ALL_REDUCE),
    ONE_SHOT_IN_PLACE(Collective.ALL_REDUCE),
    ALL_TO_ALL(Collective.ALL_TO_ALL),
    BROADCAST(Collective.BROADCAST),
    /// Each rank sends to the next and receives from the previous one.
    RING(Collective.SEND),
    /// Like the ring, but in two calls: every second rank receives first.
    TURNS(Collective.RECEIVE),
    /// Between two barriers, each rank reads the data written by the next one.
    BARRIER(Collective.BARRIER),
    /// Ranks 2i and 2i + 1 send each other their `x`, in order; a last rank without a partner keeps
    /// its own.
    PAIRS(Collective.SEND);

    private final Collective collective;

    Operation(Collective collective) {
      this.collective = collective;
    }

    /// Returns true if it names its algorithm; libraries choose their own.
    private boolean isOneShot() {
      return this == ONE_SHOT || this == ONE_SHOT_IN_PLACE;
    }

    @Override
    public String toString() {
      return collective.toString();
    }
  }

  /// Implementations under test.
  public enum Route {
    COPY_ENGINE(CollectiveWay.COPY_ENGINE),
    ONE_WORKER(CollectiveWay.WORKERS),
    TWO_WORKERS(CollectiveWay.WORKERS),
    ONE_KERNEL(CollectiveWay.ONE_KERNEL),
    PUSHING(CollectiveWay.PUSHING),
    NCCL_KERNELS(CollectiveWay.NCCL_KERNELS),
    NCCL_COPY_ENGINE(CollectiveWay.NCCL_COPY_ENGINE),
    NCCL_SYMMETRIC(CollectiveWay.NCCL_SYMMETRIC),
    NVSHMEM_PUTS(CollectiveWay.NVSHMEM_PUTS);

    private final CollectiveWay way;

    Route(CollectiveWay way) {
      this.way = way;
    }

    public Collectives of(ProcessGroup group) {
      var comm = Collectives.on(group);
      return switch (this) {
        case COPY_ENGINE -> comm;
        case ONE_WORKER -> comm.over(Transport.WORKERS);
        case TWO_WORKERS -> comm.over(Transport.WORKERS).workers(2);
        case ONE_KERNEL -> comm.over(Transport.ONE_KERNEL);
        case PUSHING -> comm.pushing();
        case NCCL_KERNELS, NCCL_COPY_ENGINE, NCCL_SYMMETRIC, NVSHMEM_PUTS ->
            comm.over(way.transport());
      };
    }
  }

  @Override
  public String what() {
    return operation.toString();
  }

  @Override
  public String method() {
    return operation.isOneShot() ? AllReduce.ONE_SHOT.toString() : "";
  }

  @Override
  public String over() {
    return route.way.toString();
  }

  private boolean supportedBy(Capabilities.CollectiveRow row) {
    return row.supported()
        && row.collective() == operation.collective
        && row.way() == route.way
        && !(operation.isOneShot() && route.way.library().isPresent())
        && (!operation.collective.adds()
            || route.way.library().map(library -> library.adds(dtype)).orElse(true));
  }

  /// Returns the cases that the rows support.
  public static List<CollectiveCase> supported(
      List<CollectiveCase> cases, List<Capabilities.CollectiveRow> rows) {
    return cases.stream().filter(each -> rows.stream().anyMatch(each::supportedBy)).toList();
  }

  /// Returns every collective in every type, once per route.
  public static List<CollectiveCase> quick() {
    return table().stream()
        .filter(each -> each.columns > 1 && each.rows % 2 != 0 && each.route != Route.ONE_WORKER)
        .toList();
  }

  /// Returns every collective in every type and route, in nice and ugly sizes.
  public static List<CollectiveCase> table() {
    return Arrays.stream(Operation.values())
        .flatMap(
            operation ->
                Arrays.stream(DType.values())
                    .flatMap(
                        dtype ->
                            Arrays.stream(Route.values())
                                .flatMap(
                                    way ->
                                        Stream.of(
                                            new CollectiveCase(operation, dtype, way, 8, 16),
                                            new CollectiveCase(operation, dtype, way, 1, 1),
                                            new CollectiveCase(operation, dtype, way, 3, 7)))))
        .toList();
  }

  /// Returns cases so large that parts are added in several chunks, the last of them smaller, and
  /// that libraries use other algorithms than for small ones.
  public static List<CollectiveCase> large() {
    return List.of(
        new CollectiveCase(
            Operation.ALL_REDUCE_IN_PLACE, DType.FP32, Route.COPY_ENGINE, 1031, 1021),
        new CollectiveCase(Operation.ALL_REDUCE, DType.BF16, Route.TWO_WORKERS, 1031, 1021),
        new CollectiveCase(Operation.ONE_SHOT, DType.FP32, Route.TWO_WORKERS, 1031, 1021),
        new CollectiveCase(Operation.ONE_SHOT_IN_PLACE, DType.FP32, Route.COPY_ENGINE, 509, 1021),
        new CollectiveCase(Operation.REDUCE_SCATTER, DType.FP32, Route.COPY_ENGINE, 1031, 1021),
        new CollectiveCase(Operation.ONE_SHOT, DType.BF16, Route.ONE_KERNEL, 1031, 1021),
        new CollectiveCase(Operation.ALL_REDUCE_IN_PLACE, DType.FP32, Route.ONE_KERNEL, 1031, 1021),
        new CollectiveCase(Operation.ALL_GATHER, DType.FP32, Route.ONE_KERNEL, 1031, 1021),
        new CollectiveCase(Operation.ALL_GATHER, DType.FP32, Route.PUSHING, 1031, 1021),
        new CollectiveCase(Operation.ALL_TO_ALL, DType.BF16, Route.PUSHING, 1031, 1021),
        new CollectiveCase(Operation.ALL_REDUCE, DType.FP32, Route.NCCL_KERNELS, 1031, 1021),
        new CollectiveCase(Operation.ALL_REDUCE, DType.FP32, Route.NCCL_SYMMETRIC, 1031, 1021),
        new CollectiveCase(Operation.REDUCE_SCATTER, DType.BF16, Route.NCCL_SYMMETRIC, 1031, 1021),
        new CollectiveCase(Operation.ALL_GATHER, DType.FP32, Route.NCCL_SYMMETRIC, 1031, 1021),
        new CollectiveCase(Operation.ALL_GATHER, DType.FP32, Route.NCCL_COPY_ENGINE, 1031, 1021),
        new CollectiveCase(Operation.ALL_GATHER, DType.FP32, Route.NVSHMEM_PUTS, 1031, 1021));
  }

  @Override
  public String text() {
    return Stream.of(operation.name(), dtype.name(), route.name(), rows, columns)
        .map(String::valueOf)
        .collect(Collectors.joining(","));
  }

  public static CollectiveCase parse(String text) {
    var part = text.split(",", -1);
    return new CollectiveCase(
        Operation.valueOf(part[0]),
        DType.valueOf(part[1]),
        Route.valueOf(part[2]),
        Integer.parseInt(part[3]),
        Integer.parseInt(part[4]));
  }

  private long rowsOfX(int ranks) {
    boolean ofAll = operation == Operation.REDUCE_SCATTER || operation == Operation.ALL_TO_ALL;
    return ofAll ? (long) rows * ranks : rows;
  }

  private long rowsOfY(int ranks) {
    boolean ofAll = operation == Operation.ALL_GATHER || operation == Operation.ALL_TO_ALL;
    return ofAll ? (long) rows * ranks : rows;
  }

  @Override
  public Opened open(CaseContext context, Findings findings) {
    var group = context.group();
    return new Running(
        this,
        context,
        route.of(group),
        tensor(context, "x", rowsOfX(group.size())),
        tensor(context, "y", rowsOfY(group.size())));
  }

  private record Running(
      CollectiveCase tested,
      CaseContext context,
      Collectives comm,
      SymmetricTensor x,
      SymmetricTensor y)
      implements Opened {
    /// Runs once per root. The input is overwritten at once, which no rank may notice; the output
    /// is filled with NaN before, so that no earlier result can pass for this one.
    @Override
    public void round(int round, Findings findings) {
      var group = context.group();
      for (int root = 0;
          root < (tested.operation == Operation.BROADCAST ? group.size() : 1);
          root++) {
        int seed = 100 * round + 10 * root;
        int elements = (int) x.local().elements();
        x.local().fillIntegers(seed + group.rank());
        y.local().fill(Float.NaN);
        var result = tested.made(round, group, comm, x, y, root).local();
        context.alteration().accept(result);
        var got = result.toFloats();
        x.local().fill(Float.NaN);
        findings.same(
            "%s on rank %s, round %d, root %d: result"
                .formatted(tested, group.place(), round, root),
            tested.wanted(group, root, rank -> Integers.first(seed + rank, elements)),
            got);
      }
    }

    @Override
    public void close() {
      y.close();
      x.close();
    }
  }

  private SymmetricTensor tensor(CaseContext context, String name, long first) {
    return SymmetricTensor.on(context.group())
        .shape(first, columns)
        .dtype(dtype)
        .memory(context.kind())
        .name(name)
        .allocate();
  }

  /// Returns the result. In odd rounds a collective is started and awaited later, as a link is.
  private SymmetricTensor made(
      int round,
      ProcessGroup group,
      Collectives comm,
      SymmetricTensor x,
      SymmetricTensor y,
      int root) {
    if (round % 2 == 0 || operation.collective.isMessage() || operation == Operation.BARRIER) {
      return make(group, comm, x, y, root);
    }
    var result = new ArrayList<SymmetricTensor>();
    comm.start(c -> result.add(make(group, c, x, y, root))).await();
    return result.getFirst();
  }

  private SymmetricTensor make(
      ProcessGroup group, Collectives comm, SymmetricTensor x, SymmetricTensor y, int root) {
    switch (operation) {
      case ALL_GATHER -> comm.allGather(x, y);
      case REDUCE_SCATTER -> comm.reduceScatter(x, y);
      case ALL_REDUCE -> comm.allReduce(x, y);
      case ALL_TO_ALL -> comm.allToAll(x, y);
      case ALL_REDUCE_IN_PLACE -> {
        comm.allReduce(x, x);
        return x;
      }
      case ONE_SHOT -> comm.oneShot().allReduce(x, y);
      case ONE_SHOT_IN_PLACE -> {
        comm.oneShot().allReduce(x, x);
        return x;
      }
      case BROADCAST -> {
        comm.broadcast(x, root);
        return x;
      }
      case RING -> {
        int ranks = group.size();
        comm.sendReceive(x, (group.rank() + 1) % ranks, y, (group.rank() + ranks - 1) % ranks);
      }
      case TURNS -> {
        int next = (group.rank() + 1) % group.size();
        int previous = (group.rank() + group.size() - 1) % group.size();
        if (group.rank() % 2 == 0) {
          comm.send(x, next);
          comm.receive(y, previous);
        } else {
          comm.receive(y, previous);
          comm.send(x, next);
        }
      }
      case BARRIER -> {
        comm.barrier();
        y.local().copyFrom(x.on((group.rank() + 1) % group.size()));
        comm.barrier();
      }
      case PAIRS -> {
        int other = paired(group.place());
        if (other > group.rank()) {
          comm.send(x, other);
          comm.receive(y, other);
        } else if (other < group.rank()) {
          comm.receive(y, other);
          comm.send(x, other);
        } else {
          y.local().copyFrom(x.local());
        }
      }
    }
    return y;
  }

  /// Returns the other rank of its pair, or itself.
  private static int paired(Place place) {
    int other = place.rank() % 2 == 0 ? place.rank() + 1 : place.rank() - 1;
    return other < place.size() ? other : place.rank();
  }

  /// Input of a rank.
  @FunctionalInterface
  private interface Inputs {
    float[] of(int rank);
  }

  private float[] wanted(ProcessGroup group, int root, Inputs inputs) {
    var all = IntStream.range(0, group.size()).mapToObj(inputs::of).toList();
    return wanted(operation, dtype, group.place(), root, all);
  }

  /// Returns the result on a rank after a collective on those inputs.
  public static float[] wanted(
      Operation operation, DType dtype, Place place, int root, List<float[]> all) {
    return switch (operation) {
      case ALL_GATHER -> joined(all);
      case REDUCE_SCATTER -> part(sum(dtype, all), place.size(), place.rank());
      case ALL_REDUCE, ALL_REDUCE_IN_PLACE, ONE_SHOT, ONE_SHOT_IN_PLACE -> sum(dtype, all);
      case ALL_TO_ALL ->
          joined(all.stream().map(each -> part(each, place.size(), place.rank())).toList());
      case BROADCAST -> all.get(root);
      case RING, TURNS -> all.get((place.rank() + place.size() - 1) % place.size());
      case BARRIER -> all.get((place.rank() + 1) % place.size());
      case PAIRS -> all.get(paired(place));
    };
  }

  private static float[] sum(DType dtype, List<float[]> all) {
    var sum = new float[all.getFirst().length];
    for (int i = 0; i < sum.length; i++) {
      float one = 0;
      for (var each : all) {
        one += each[i];
      }
      sum[i] = PlainCase.rounded(dtype, one);
    }
    return sum;
  }

  private static float[] part(float[] whole, int parts, int index) {
    int length = whole.length / parts;
    return Arrays.copyOfRange(whole, index * length, (index + 1) * length);
  }

  private static float[] joined(List<float[]> parts) {
    int length = parts.getFirst().length;
    var joined = new float[parts.size() * length];
    for (int i = 0; i < parts.size(); i++) {
      System.arraycopy(parts.get(i), 0, joined, i * length, length);
    }
    return joined;
  }
}
