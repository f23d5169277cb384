package braid.bench;

import braid.Collectives;
import braid.ProcessGroup;
import braid.SymmetricTensor;
import braid.model.AllReduce;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.DType;
import braid.model.Problem;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/// A standalone collective, by Braid's copies and by libraries. A library's forms are rivals. An
/// iteration calls it [#CALLS] times, so that what an iteration costs by itself counts little.
///
/// @param bytes of the larger of both tensors, on each rank
/// @param onGpu whether there are libraries
public record CollectiveWorkload(
    Collective collective, int ranks, DType dtype, long bytes, boolean onGpu) implements Workload {
  /// Calls of an iteration.
  public static final int CALLS = 8;

  private static final List<Collective> COLLECTIVES =
      List.of(Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE);

  private static final List<Long> SIZES =
      List.of(1L << 10, 8L << 10, 64L << 10, 512L << 10, 4L << 20, 32L << 20, 128L << 20);

  /// Workers of a GPU, and of a host, whose ranks have a core each.
  private static final int WORKERS = 16;

  private static final int WORKERS_OF_HOST = 1;

  /// How a collective is made.
  ///
  /// @param workers compute units per rank; 0 over other units than workers
  /// @param algorithm of a sum by copies; empty if there is no choice
  record Way(CollectiveWay way, int workers, Optional<AllReduce> algorithm) {
    /// Returns these collectives. All ranks call it together.
    Collectives on(ProcessGroup group) {
      var all = Collectives.on(group);
      var some =
          switch (way) {
            case COPY_ENGINE -> all;
            case PUSHING -> all.pushing();
            case WORKERS -> all.over(Transport.WORKERS).workers(workers);
            case ONE_KERNEL, NCCL_KERNELS, NCCL_COPY_ENGINE, NCCL_SYMMETRIC, NVSHMEM_PUTS ->
                all.over(way.transport());
          };
      return algorithm
          .map(
              chosen ->
                  switch (chosen) {
                    case ONE_SHOT -> some.oneShot();
                    case TWO_SHOT -> some.twoShot();
                  })
          .orElse(some);
    }

    @Override
    public String toString() {
      return way.toString().replace('_', ' ')
          + (workers > 0 ? ", %d per rank".formatted(workers) : "")
          + algorithm.map(chosen -> ", " + chosen).orElse("");
    }
  }

  static List<CollectiveWorkload> all(int ranks, DType dtype, int divisor, boolean onGpu) {
    var all = new ArrayList<CollectiveWorkload>();
    for (var collective : COLLECTIVES) {
      for (long size : SIZES) {
        long least = (long) ranks * dtype.bytes();
        // Every rank has a part of the same size.
        long bytes = Math.max(1, size / divisor / least) * least;
        all.add(new CollectiveWorkload(collective, ranks, dtype, bytes, onGpu));
      }
    }
    return all.stream().distinct().toList();
  }

  @Override
  public String name() {
    return "standalone %s %s, %d times".formatted(collective, size(), CALLS);
  }

  private String size() {
    return bytes % (1 << 20) == 0
        ? (bytes >> 20) + " MiB"
        : bytes % (1 << 10) == 0 ? (bytes >> 10) + " KiB" : bytes + " B";
  }

  @Override
  public List<Problem> problems() {
    return List.of();
  }

  /// Returns the number of elements of the larger of both tensors.
  public long elements() {
    return bytes / dtype.bytes();
  }

  @Override
  public List<Form> forms() {
    return ways().map(way -> new Form(way.toString(), way.toString(), Optional.empty())).toList();
  }

  private Stream<Way> ways() {
    return Stream.of(CollectiveWay.values()).filter(this::isTried).flatMap(this::ways);
  }

  private boolean isTried(CollectiveWay way) {
    return switch (way) {
      case COPY_ENGINE, WORKERS, ONE_KERNEL -> true;
      case PUSHING -> !collective.adds();
      case NCCL_KERNELS -> onGpu;
      case NCCL_COPY_ENGINE -> onGpu && !collective.adds();
      case NCCL_SYMMETRIC -> onGpu && collective != Collective.REDUCE_SCATTER;
      case NVSHMEM_PUTS -> false;
    };
  }

  private Stream<Way> ways(CollectiveWay way) {
    int workers = way == CollectiveWay.WORKERS ? onGpu ? WORKERS : WORKERS_OF_HOST : 0;
    return collective == Collective.ALL_REDUCE && way.library().isEmpty()
        ? Stream.of(AllReduce.values()).map(each -> new Way(way, workers, Optional.of(each)))
        : Stream.of(new Way(way, workers, Optional.empty()));
  }

  /// Returns the way of a form.
  Way way(Form form) {
    return ways().filter(way -> way.toString().equals(form.name())).findFirst().orElseThrow();
  }

  @Override
  public boolean isRival(String form) {
    return ways().anyMatch(way -> way.toString().equals(form) && way.way().library().isPresent());
  }

  /// Calls the collective.
  void call(Collectives comm, SymmetricTensor x, SymmetricTensor y) {
    switch (collective) {
      case ALL_GATHER -> comm.allGather(x, y);
      case REDUCE_SCATTER -> comm.reduceScatter(x, y);
      case ALL_REDUCE -> comm.allReduce(x, y);
      case ALL_TO_ALL, BROADCAST, SEND, RECEIVE, BARRIER ->
          throw new IllegalStateException("not timed: " + collective);
    }
  }

  @Override
  public boolean isPossible(Form form) {
    return true;
  }

  @Override
  public String alone() {
    return "";
  }

  @Override
  public double flops(String form) {
    return 0;
  }

  @Override
  public OpenWorkload open(ProcessGroup group) {
    return new OpenCollective(group, this);
  }
}
