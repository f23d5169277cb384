package braid;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// One collective in one type, size and way, held to plain loops over the same integers to the last
/// bit. It has a form as text, so that ranks that are processes can be given it.
///
/// @param rows of each rank's part: the smaller of the two tensors
record CollectiveCase(What what, DType dtype, Way way, int rows, int columns) {
  private static final int ROUNDS = 2;

  enum What {
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_REDUCE,
    ALL_REDUCE_IN_PLACE,
    ALL_TO_ALL,
    BROADCAST
  }

  enum Way {
    COPY_ENGINE,
    ONE_WORKER,
    TWO_WORKERS;

    Collectives of(ProcessGroup group) {
      var comm = Collectives.on(group);
      return switch (this) {
        case COPY_ENGINE -> comm;
        case ONE_WORKER -> comm.over(Transport.WORKERS);
        case TWO_WORKERS -> comm.over(Transport.WORKERS).workers(2);
      };
    }
  }

  /// Every collective in every type and way, in sizes nice and ugly.
  static List<CollectiveCase> table() {
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

  /// So large that parts are added up in several chunks, the last of them not whole.
  static List<CollectiveCase> large() {
    return List.of(
        new CollectiveCase(What.ALL_REDUCE_IN_PLACE, DType.FP32, Way.COPY_ENGINE, 1031, 1021),
        new CollectiveCase(What.ALL_REDUCE, DType.BF16, Way.TWO_WORKERS, 1031, 1021),
        new CollectiveCase(What.REDUCE_SCATTER, DType.FP32, Way.COPY_ENGINE, 1031, 1021));
  }

  String text() {
    return Stream.of(what, dtype.name(), way, rows, columns)
        .map(String::valueOf)
        .collect(Collectors.joining(","));
  }

  static CollectiveCase parse(String text) {
    var part = text.split(",", -1);
    return new CollectiveCase(
        What.valueOf(part[0]),
        DType.valueOf(part[1]),
        Way.valueOf(part[2]),
        Integer.parseInt(part[3]),
        Integer.parseInt(part[4]));
  }

  private long rowsOfX(int ranks) {
    return switch (what) {
      case REDUCE_SCATTER, ALL_TO_ALL -> (long) rows * ranks;
      case ALL_GATHER, ALL_REDUCE, ALL_REDUCE_IN_PLACE, BROADCAST -> rows;
    };
  }

  private long rowsOfY(int ranks) {
    return switch (what) {
      case ALL_GATHER, ALL_TO_ALL -> (long) rows * ranks;
      case REDUCE_SCATTER, ALL_REDUCE, ALL_REDUCE_IN_PLACE, BROADCAST -> rows;
    };
  }

  /// Holds it to what plain loops say, again and again with other contents. What was brought is
  /// written over at once, which nobody may see; what is got is spoiled before, so that nothing of
  /// an earlier call can pass for it.
  void check(ProcessGroup group) {
    var comm = way.of(group);
    try (var x = tensor(group, "x", rowsOfX(group.size()));
        var y = tensor(group, "y", rowsOfY(group.size()))) {
      for (int round = 0; round < ROUNDS; round++) {
        for (int root = 0; root < (what == What.BROADCAST ? group.size() : 1); root++) {
          int seed = 100 * round + 10 * root;
          int elements = (int) x.local().elements();
          x.local().fillIntegers(seed + group.rank());
          y.local().fill(Float.NaN);
          var got = make(comm, x, y, root).local().toFloats();
          x.local().fill(Float.NaN);
          var wanted = wanted(group, root, rank -> integers(seed + rank, elements));
          int wrong = Arrays.mismatch(got, wanted);
          assertThat(wrong)
              .as(
                  "%s on rank %s, round %d, root %d: first wrong element, where %s is %s",
                  this, group.place(), round, root, text(wanted, wrong), text(got, wrong))
              .isNegative();
        }
      }
    }
  }

  private static String text(float[] values, int at) {
    return at < 0 || at >= values.length ? "none" : Float.toString(values[at]);
  }

  private SymmetricTensor tensor(ProcessGroup group, String name, long first) {
    return SymmetricTensor.on(group).shape(first, columns).dtype(dtype).name(name).allocate();
  }

  private SymmetricTensor make(Collectives comm, SymmetricTensor x, SymmetricTensor y, int root) {
    switch (what) {
      case ALL_GATHER -> comm.allGather(x, y);
      case REDUCE_SCATTER -> comm.reduceScatter(x, y);
      case ALL_REDUCE -> comm.allReduce(x, y);
      case ALL_TO_ALL -> comm.allToAll(x, y);
      case ALL_REDUCE_IN_PLACE -> {
        comm.allReduce(x, x);
        return x;
      }
      case BROADCAST -> {
        comm.broadcast(x, root);
        return x;
      }
    }
    return y;
  }

  private float[] integers(long seed, int count) {
    return new Tensor(
            List.of((long) count),
            dtype,
            MemorySegment.ofArray(new byte[count * dtype.bytes()]),
            braid.internal.host.HostAccess.HOST)
        .fillIntegers(seed)
        .toFloats();
  }

  /// What a rank brought.
  @FunctionalInterface
  interface Brought {
    float[] by(int rank);
  }

  private float[] wanted(ProcessGroup group, int root, Brought brought) {
    var all = IntStream.range(0, group.size()).mapToObj(brought::by).toList();
    return wanted(what, dtype, group.place(), root, all);
  }

  /// What that rank has after a collective on those.
  static float[] wanted(What what, DType dtype, Place place, int root, List<float[]> all) {
    return switch (what) {
      case ALL_GATHER -> joined(all);
      case REDUCE_SCATTER -> part(sum(dtype, all), place.size(), place.rank());
      case ALL_REDUCE, ALL_REDUCE_IN_PLACE -> sum(dtype, all);
      case ALL_TO_ALL ->
          joined(all.stream().map(each -> part(each, place.size(), place.rank())).toList());
      case BROADCAST -> all.get(root);
    };
  }

  private static float[] sum(DType dtype, List<float[]> all) {
    var sum = new float[all.getFirst().length];
    for (int i = 0; i < sum.length; i++) {
      float one = 0;
      for (var each : all) {
        one += each[i];
      }
      sum[i] = dtype.round(one);
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
