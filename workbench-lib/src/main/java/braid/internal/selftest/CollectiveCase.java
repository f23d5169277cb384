package braid.internal.selftest;

import braid.Capabilities;
import braid.Collectives;
import braid.ProcessGroup;
import braid.SymmetricTensor;
import braid.model.AllReduce;
import braid.model.CollectiveWay;
import braid.model.DType;
import braid.model.Library;
import braid.model.Place;
import braid.model.Transport;
import braid.natives.kernels.Integers;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// One collective in one type, size and way, held to plain loops over the same integers to the last
/// bit.
///
/// @param rows of each rank's part: the smaller of the two tensors
public record CollectiveCase(What made, DType dtype, Way way, int rows, int columns)
    implements TabledCase {
  /// What is made.
  public enum What {
    ALL_GATHER("all-gather", false),
    REDUCE_SCATTER("reduce-scatter", true),
    ALL_REDUCE("all-reduce", true),
    ALL_REDUCE_IN_PLACE("all-reduce", true),
    ONE_SHOT("all-reduce", true),
    ONE_SHOT_IN_PLACE("all-reduce", true),
    ALL_TO_ALL("all-to-all", false),
    BROADCAST("broadcast", false),
    /// Each rank sends to the next one and receives from the one before it.
    RING("send", false),
    /// The same in two calls: every second rank receives first.
    TURNS("receive", false),
    /// Between two barriers each rank reads what the next one has written.
    BARRIER("barrier", false),
    /// Ranks 2i and 2i + 1 send each other their `x`, one after the other; a last rank alone keeps
    /// its own.
    PAIRS("send", false);

    private final String collective;
    private final boolean adds;

    What(String collective, boolean adds) {
      this.collective = collective;
      this.adds = adds;
    }

    /// Whether it names its algorithm, which a library chooses by itself.
    private boolean isOneShot() {
      return this == ONE_SHOT || this == ONE_SHOT_IN_PLACE;
    }

    @Override
    public String toString() {
      return collective;
    }
  }

  /// How it is made.
  public enum Way {
    COPY_ENGINE(CollectiveWay.COPY_ENGINE),
    ONE_WORKER(CollectiveWay.WORKERS),
    TWO_WORKERS(CollectiveWay.WORKERS),
    PUSHING(CollectiveWay.PUSHING),
    NCCL(CollectiveWay.NCCL),
    NCCL_COPY_ENGINE(CollectiveWay.NCCL_COPY_ENGINE),
    NVSHMEM(CollectiveWay.NVSHMEM);

    private final CollectiveWay made;

    Way(CollectiveWay made) {
      this.made = made;
    }

    public Collectives of(ProcessGroup group) {
      var comm = Collectives.on(group);
      return switch (this) {
        case COPY_ENGINE -> comm;
        case ONE_WORKER -> comm.over(Transport.WORKERS);
        case TWO_WORKERS -> comm.over(Transport.WORKERS).workers(2);
        case PUSHING -> comm.pushing();
        case NCCL -> comm.by(Library.NCCL);
        case NCCL_COPY_ENGINE -> comm.by(Library.NCCL_COPY_ENGINE);
        case NVSHMEM -> comm.by(Library.NVSHMEM);
      };
    }
  }

  @Override
  public String what() {
    return made.toString();
  }

  @Override
  public String method() {
    return made.isOneShot() ? AllReduce.ONE_SHOT.toString() : "";
  }

  @Override
  public String over() {
    return way.made.toString();
  }

  private boolean supportedBy(Capabilities.CollectiveRow row) {
    return row.supported()
        && row.collective().equals(what())
        && row.way() == way.made
        && !(made.isOneShot() && way.made.library().isPresent())
        && (!made.adds || way.made.library().map(library -> library.adds(dtype)).orElse(true));
  }

  /// Those of them that such rows support.
  public static List<CollectiveCase> supported(
      List<CollectiveCase> cases, List<Capabilities.CollectiveRow> rows) {
    return cases.stream().filter(each -> rows.stream().anyMatch(each::supportedBy)).toList();
  }

  /// Every collective in every type, once by each way.
  public static List<CollectiveCase> quick() {
    return table().stream()
        .filter(each -> each.columns > 1 && each.rows % 2 != 0 && each.way != Way.ONE_WORKER)
        .toList();
  }

  /// Every collective in every type and way, in sizes nice and ugly.
  public static List<CollectiveCase> table() {
    return Arrays.stream(What.values())
        .flatMap(
            what ->
                Arrays.stream(DType.values())
                    .flatMap(
                        dtype ->
                            Arrays.stream(Way.values())
                                .flatMap(
                                    way ->
                                        Stream.of(
                                            new CollectiveCase(what, dtype, way, 8, 16),
                                            new CollectiveCase(what, dtype, way, 1, 1),
                                            new CollectiveCase(what, dtype, way, 3, 7)))))
        .toList();
  }

  /// So large that parts are added up in several chunks, the last of them not whole, and that
  /// libraries take other ways than for small ones.
  public static List<CollectiveCase> large() {
    return List.of(
        new CollectiveCase(What.ALL_REDUCE_IN_PLACE, DType.FP32, Way.COPY_ENGINE, 1031, 1021),
        new CollectiveCase(What.ALL_REDUCE, DType.BF16, Way.TWO_WORKERS, 1031, 1021),
        new CollectiveCase(What.ONE_SHOT, DType.FP32, Way.TWO_WORKERS, 1031, 1021),
        new CollectiveCase(What.ONE_SHOT_IN_PLACE, DType.FP32, Way.COPY_ENGINE, 509, 1021),
        new CollectiveCase(What.REDUCE_SCATTER, DType.FP32, Way.COPY_ENGINE, 1031, 1021),
        new CollectiveCase(What.ALL_GATHER, DType.FP32, Way.PUSHING, 1031, 1021),
        new CollectiveCase(What.ALL_TO_ALL, DType.BF16, Way.PUSHING, 1031, 1021),
        new CollectiveCase(What.ALL_REDUCE, DType.FP32, Way.NCCL, 1031, 1021),
        new CollectiveCase(What.ALL_GATHER, DType.FP32, Way.NCCL_COPY_ENGINE, 1031, 1021),
        new CollectiveCase(What.ALL_GATHER, DType.FP32, Way.NVSHMEM, 1031, 1021));
  }

  @Override
  public String text() {
    return Stream.of(made.name(), dtype.name(), way.name(), rows, columns)
        .map(String::valueOf)
        .collect(Collectors.joining(","));
  }

  public static CollectiveCase parse(String text) {
    var part = text.split(",", -1);
    return new CollectiveCase(
        What.valueOf(part[0]),
        DType.valueOf(part[1]),
        Way.valueOf(part[2]),
        Integer.parseInt(part[3]),
        Integer.parseInt(part[4]));
  }

  private long rowsOfX(int ranks) {
    return switch (made) {
      case REDUCE_SCATTER, ALL_TO_ALL -> (long) rows * ranks;
      case ALL_GATHER,
          ALL_REDUCE,
          ALL_REDUCE_IN_PLACE,
          ONE_SHOT,
          ONE_SHOT_IN_PLACE,
          BROADCAST,
          RING,
          TURNS,
          BARRIER,
          PAIRS ->
          rows;
    };
  }

  private long rowsOfY(int ranks) {
    return switch (made) {
      case ALL_GATHER, ALL_TO_ALL -> (long) rows * ranks;
      case REDUCE_SCATTER,
          ALL_REDUCE,
          ALL_REDUCE_IN_PLACE,
          ONE_SHOT,
          ONE_SHOT_IN_PLACE,
          BROADCAST,
          RING,
          TURNS,
          BARRIER,
          PAIRS ->
          rows;
    };
  }

  @Override
  public Opened open(CaseGroup trial, Findings findings) {
    var group = trial.group();
    return new Running(
        this,
        trial,
        way.of(group),
        tensor(trial, "x", rowsOfX(group.size())),
        tensor(trial, "y", rowsOfY(group.size())));
  }

  private record Running(
      CollectiveCase of, CaseGroup trial, Collectives comm, SymmetricTensor x, SymmetricTensor y)
      implements Opened {
    /// Every root has its turn. The input is overwritten at once, which no rank may see; the output
    /// is spoiled before, so that nothing of an earlier call can pass for it.
    @Override
    public void round(int round, Findings findings) {
      var group = trial.group();
      for (int root = 0; root < (of.made == What.BROADCAST ? group.size() : 1); root++) {
        int seed = 100 * round + 10 * root;
        int elements = (int) x.local().elements();
        x.local().fillIntegers(seed + group.rank());
        y.local().fill(Float.NaN);
        var result = of.make(group, comm, x, y, root).local();
        trial.handled().accept(result);
        var got = result.toFloats();
        x.local().fill(Float.NaN);
        findings.same(
            "%s on rank %s, round %d, root %d: result".formatted(of, group.place(), round, root),
            of.wanted(group, root, rank -> Integers.first(seed + rank, elements)),
            got);
      }
    }

    @Override
    public void close() {
      y.close();
      x.close();
    }
  }

  private SymmetricTensor tensor(CaseGroup trial, String name, long first) {
    return SymmetricTensor.on(trial.group())
        .shape(first, columns)
        .dtype(dtype)
        .memory(trial.kind())
        .name(name)
        .allocate();
  }

  private SymmetricTensor make(
      ProcessGroup group, Collectives comm, SymmetricTensor x, SymmetricTensor y, int root) {
    switch (made) {
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

  /// The other rank of its pair, or itself.
  private static int paired(Place place) {
    int other = place.rank() % 2 == 0 ? place.rank() + 1 : place.rank() - 1;
    return other < place.size() ? other : place.rank();
  }

  /// What a rank brought.
  @FunctionalInterface
  private interface Brought {
    float[] by(int rank);
  }

  private float[] wanted(ProcessGroup group, int root, Brought brought) {
    var all = IntStream.range(0, group.size()).mapToObj(brought::by).toList();
    return wanted(made, dtype, group.place(), root, all);
  }

  /// What that rank has after a collective on those.
  public static float[] wanted(What what, DType dtype, Place place, int root, List<float[]> all) {
    return switch (what) {
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
