package braid.internal.selftest;

import braid.Capabilities;
import braid.Collectives;
import braid.Pipeline;
import braid.ProcessGroup;
import braid.SymmetricTensor;
import braid.internal.context.RankContext;
import braid.internal.cuda.CudaBackend;
import braid.internal.cuda.GpuRecording;
import braid.internal.rank.Closing;
import braid.internal.selftest.CollectiveCase.Route;
import braid.model.Activity;
import braid.model.BackendKind;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.DType;
import braid.model.Stage;
import braid.model.Transport;
import braid.natives.load.BraidNativeMissing;
import braid.natives.load.Libraries;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// Units that communicate on a GPU, recorded while all collectives of one way, or all pipelines
/// over one transport, run once.
///
/// Communication is every step of [Stage#COPY], which moves bytes between ranks, also when a
/// library does it. By copy engines, Braid's own or NCCL's, it must consist of copies, fills and
/// memory operations: a kernel in such a step is a fault, and so is a kernel that belongs to no
/// step, since it may communicate. Kernels that multiply, add or move bytes within a rank belong to
/// steps of other stages. By workers and by NCCL's kernels a kernel must be recorded, which proves
/// that one would be seen. The kernels with their grids are the case's result.
///
/// @param ofPipelines true for pipelines, false for collectives
/// @param way way of the collectives; of pipelines the way of their transport
/// @param collectives collectives to run
/// @param pipelines pipelines to run
public record CommunicationCase(
    boolean ofPipelines,
    CollectiveWay way,
    List<Collective> collectives,
    List<PipelineCase> pipelines) {
  /// Begin of the names of all cases.
  public static final String WHAT = "units-of";

  public static final DType DTYPE = DType.BF16;

  /// Elements of a rank's part: 2 MiB.
  private static final long ELEMENTS = 1 << 20;

  /// Collectives that move bytes between ranks. A message is sent and received in one call.
  private static final List<Collective> MOVING =
      Arrays.stream(Collective.values())
          .filter(each -> each != Collective.BARRIER && each != Collective.RECEIVE)
          .toList();

  /// Engines that a step may use.
  enum Rule {
    /// Only copies and fills.
    NO_KERNEL,
    /// A kernel at least.
    KERNEL,
    ANY
  }

  /// Returns why this rank can record no units; empty if it can.
  public static Optional<String> missing(BackendKind backend, int ranks) {
    if (backend == BackendKind.HOST) {
      return Optional.of(
          "only a GPU records which kernels and copy engines ran; on the host, threads move all bytes; run with --backend cuda");
    }
    if (ranks == 1) {
      return Optional.of("one rank has nothing to communicate; run with -n 2 or more");
    }
    try {
      var _ = Libraries.require(Libraries.Library.CUPTI);
      return Optional.empty();
    } catch (BraidNativeMissing e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  /// Returns a case for each way and each transport that rows of one kind of memory support.
  public static List<CommunicationCase> of(
      List<Capabilities.Row> pipelines, List<Capabilities.CollectiveRow> collectives, int ranks) {
    var cases = new ArrayList<CommunicationCase>();
    for (var way : CollectiveWay.values()) {
      var moved =
          collectives.stream()
              .filter(row -> row.supported() && row.way() == way)
              .map(Capabilities.CollectiveRow::collective)
              .filter(MOVING::contains)
              .toList();
      if (!moved.isEmpty()) {
        cases.add(new CommunicationCase(false, way, moved, List.of()));
      }
    }
    for (var transport : Transport.values()) {
      if (transport.multiplies()) {
        continue; // copies and multiplication are one call
      }
      var run = new ArrayList<PipelineCase>();
      for (var each : PipelineCases.quick(pipelines, ranks)) {
        if (each.tuning().transport() == transport && each.dtype() == DTYPE) {
          run.add(each);
          run.add(new PipelineCase(each.spec(), each.tuning().replay()));
        }
      }
      if (!run.isEmpty()) {
        cases.add(new CommunicationCase(true, CollectiveWay.of(transport), List.of(), run));
      }
    }
    return cases;
  }

  public String what() {
    return WHAT + (ofPipelines ? "-pipelines" : "-collectives");
  }

  Rule rule() {
    return switch (way) {
      case COPY_ENGINE, PUSHING, NCCL_COPY_ENGINE -> Rule.NO_KERNEL;
      case WORKERS, ONE_KERNEL, NCCL_KERNELS, NCCL_SYMMETRIC -> Rule.KERNEL;
      // Its puts choose between copy engines and a kernel.
      case NVSHMEM_PUTS -> Rule.ANY;
    };
  }

  /// Runs the case on this rank and returns the recorded units, the same text on all ranks. All
  /// ranks of the group call it together. Throws [CaseFailed] if this rank breaks the rule, after
  /// the last call that the ranks make together.
  public String check(CaseContext context) {
    if (!(RankContext.current().backend() instanceof CudaBackend gpu)) {
      throw new IllegalStateException("only a GPU records units");
    }
    var opened = new ArrayDeque<AutoCloseable>();
    GpuRecording recorded;
    try {
      var work = ofPipelines ? pipelines(context, opened) : collectives(context, opened);
      // Sets up libraries, compiles plans, and fills caches.
      work.run();
      recorded = GpuRecording.during(gpu, work);
    } catch (RuntimeException | Error e) {
      Closing.after(e, () -> Closing.all(opened::poll));
      throw e;
    }
    Closing.all(opened::poll);
    var units = units(context.group().gather(text(recorded)));
    fault(rule(), recorded)
        .ifPresent(
            fault -> {
              throw new CaseFailed("%s over %s: %s".formatted(what(), way, fault));
            });
    return units;
  }

  private Runnable pipelines(CaseContext context, ArrayDeque<AutoCloseable> opened) {
    var pipes = new ArrayList<Pipeline>();
    for (var each : pipelines) {
      var pipe = each.build(context);
      opened.push(pipe);
      pipes.add(pipe);
    }
    return () -> pipes.forEach(Pipeline::run);
  }

  private Runnable collectives(CaseContext context, ArrayDeque<AutoCloseable> opened) {
    var group = context.group();
    var comm = by(way, group);
    int ranks = group.size();
    var part = tensor(context, ELEMENTS, opened);
    var otherPart = tensor(context, ELEMENTS, opened);
    var whole = tensor(context, ELEMENTS * ranks, opened);
    var otherWhole = tensor(context, ELEMENTS * ranks, opened);
    return () -> {
      for (var collective : collectives) {
        switch (collective) {
          case ALL_GATHER -> comm.allGather(part, whole);
          case REDUCE_SCATTER -> comm.reduceScatter(whole, part);
          case ALL_REDUCE -> comm.allReduce(whole, otherWhole);
          case ALL_TO_ALL -> comm.allToAll(whole, otherWhole);
          case BROADCAST -> comm.broadcast(part, 0);
          case SEND ->
              comm.sendReceive(
                  part, (group.rank() + 1) % ranks, otherPart, (group.rank() + ranks - 1) % ranks);
          case RECEIVE, BARRIER ->
              throw new IllegalStateException(collective + " moves nothing by itself");
        }
        context.alteration().accept(whole.local());
      }
    };
  }

  private static Collectives by(CollectiveWay way, ProcessGroup group) {
    boolean works = way == CollectiveWay.WORKERS;
    return (works ? Route.TWO_WORKERS : Route.valueOf(way.name())).of(group);
  }

  private static SymmetricTensor tensor(
      CaseContext context, long elements, ArrayDeque<AutoCloseable> opened) {
    var tensor =
        SymmetricTensor.on(context.group())
            .shape(elements)
            .dtype(DTYPE)
            .memory(context.kind())
            .allocate();
    opened.push(tensor);
    return tensor;
  }

  private static List<Activity> communication(GpuRecording recorded) {
    return recorded.spans().stream()
        .filter(span -> span.stage() == Stage.COPY)
        .flatMap(span -> span.activities().stream())
        .toList();
  }

  /// Returns how the recording breaks the rule; empty if it does not.
  static Optional<String> fault(Rule rule, GpuRecording recorded) {
    if (recorded.dropped() > 0) {
      return Optional.of(
          "every activity must be recorded but CUPTI lost %d; run the self-test again"
              .formatted(recorded.dropped()));
    }
    var communication = communication(recorded);
    if (communication.isEmpty()) {
      return Optional.of("communication must have activities but none was recorded");
    }
    var kernels = kernels(communication);
    return switch (rule) {
      case NO_KERNEL -> {
        var unowned = kernels(recorded.unowned());
        yield kernels.isEmpty() && unowned.isEmpty()
            ? Optional.empty()
            : Optional.of(
                "no kernel may run between ranks but these did: " + text(kernels, unowned));
      }
      case KERNEL ->
          kernels.isEmpty()
              ? Optional.of(
                  "a kernel must be recorded but only these ran: " + text(communication, List.of()))
              : Optional.empty();
      case ANY -> Optional.empty();
    };
  }

  private static List<Activity> kernels(List<Activity> activities) {
    return activities.stream().filter(each -> each.kind() == Activity.Kind.KERNEL).toList();
  }

  /// Returns the units of communication and of no step, with the number of their activities: `copy
  /// engine (channel 16) ×12`.
  static String text(GpuRecording recorded) {
    return text(communication(recorded), recorded.unowned());
  }

  private static String text(List<Activity> communication, List<Activity> unowned) {
    var counts = new TreeMap<String, Integer>();
    communication.forEach(each -> counts.merge(each.engine(), 1, Integer::sum));
    unowned.forEach(each -> counts.merge(each.engine() + " of no step", 1, Integer::sum));
    return counts.entrySet().stream()
        .map(each -> "%s ×%d".formatted(each.getKey(), each.getValue()))
        .collect(Collectors.joining(", "));
  }

  /// Joins the texts of all ranks; ranks with equal ones share it.
  static String units(List<String> ofRanks) {
    var ranks = new LinkedHashMap<String, List<String>>();
    for (int rank = 0; rank < ofRanks.size(); rank++) {
      ranks.computeIfAbsent(ofRanks.get(rank), _ -> new ArrayList<>()).add("" + rank);
    }
    return ranks.size() == 1
        ? ofRanks.getFirst()
        : ranks.entrySet().stream()
            .map(
                each ->
                    "rank%s %s: %s"
                        .formatted(
                            each.getValue().size() == 1 ? "" : "s",
                            String.join(", ", each.getValue()),
                            each.getKey()))
            .collect(Collectors.joining("; "));
  }
}
