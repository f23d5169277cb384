package braid.export;

import braid.model.BraidException;
import braid.model.Collective;
import braid.model.DType;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.stream.IntStream;

/// Measured collectives as the Chrome traces that PyTorch Inductor estimates times from
/// (`aten_distributed_optimizations.profile_guided_estimations_profile_path`).
///
/// A rank that waits for others has a longer collective, and the estimator cannot tell from a trace
/// of one rank. So all ranks have the same time here: from the begin of the last rank to the end of
/// the last.
public final class InductorExport {
  private static final String TARGET = "PyTorch Inductor (profile-guided estimations)";

  /// Name of the process group of all ranks.
  private static final String GROUP = "0";

  private InductorExport() {}

  /// Returns the trace of a rank: the runs that all have as many ranks.
  public static Export trace(List<CollectiveRun> runs, int rank, MeasuredOn machine) {
    if (runs.isEmpty()) {
      throw new BraidException(
          "a trace needs 1 run of a collective or more but has none; measure one");
    }
    int size = runs.getFirst().ranks().size();
    if (runs.stream().anyMatch(run -> run.ranks().size() != size)) {
      throw new BraidException(
          "the runs of a trace must have one number of ranks but have several; export them apart");
    }
    if (rank < 0 || rank >= size) {
      throw new BraidException(
          "rank must be 0..%d but was %d; make a trace for each".formatted(size - 1, rank));
    }
    var omitted =
        List.of(
            "waiting for other ranks: each collective begins with its last rank",
            "kernels by name and stream: events have the name of their collective",
            "GEMMs and other operations: Inductor estimates them by itself");
    var ranks = new JsonArray();
    IntStream.range(0, size).forEach(ranks::add);
    var trace = new JsonObject();
    var origin = new JsonArray();
    machine.header(TARGET, omitted).forEach(origin::add);
    trace.add("braid", origin);
    trace.addProperty("schemaVersion", 1);
    trace.add("distributedInfo", distribution(rank, size, ranks));
    var events = new JsonArray();
    for (int i = 0; i < runs.size(); i++) {
      events.add(event(runs.get(i), i, ranks));
    }
    trace.add("traceEvents", events);
    return new Export(trace + "\n", omitted);
  }

  private static JsonObject distribution(int rank, int size, JsonArray ranks) {
    var group = new JsonObject();
    group.addProperty("pg_name", GROUP);
    group.add("ranks", ranks);
    var groups = new JsonArray();
    groups.add(group);
    var distribution = new JsonObject();
    distribution.addProperty("backend", "nccl");
    distribution.addProperty("rank", rank);
    distribution.addProperty("world_size", size);
    distribution.add("pg_config", groups);
    return distribution;
  }

  private static JsonObject event(CollectiveRun run, int sequence, JsonArray ranks) {
    int size = ranks.size();
    var arguments = new JsonObject();
    arguments.addProperty("Collective name", name(run.collective()));
    arguments.addProperty("In msg nelems", elements(run, Collective.ALL_GATHER, size));
    arguments.addProperty("Out msg nelems", elements(run, Collective.REDUCE_SCATTER, size));
    arguments.addProperty("Group size", size);
    arguments.addProperty("dtype", typeName(run.dtype()));
    arguments.addProperty("Process Group Name", GROUP);
    arguments.addProperty("Process Group Ranks", ranks.toString());
    arguments.addProperty("Seq", sequence);
    var event = new JsonObject();
    event.addProperty("ph", "X");
    event.addProperty("cat", "kernel");
    event.addProperty("name", run.collective().toString());
    event.addProperty("pid", 0);
    event.addProperty("tid", 0);
    event.addProperty("ts", run.arrivalNanos() / 1e3);
    event.addProperty("dur", run.nanos() / 1e3);
    event.add("args", arguments);
    return event;
  }

  /// Returns the elements of one of the two tensors: a part, if this collective has a part there.
  private static long elements(CollectiveRun run, Collective divided, int size) {
    return run.collective() == divided ? run.elements() / size : run.elements();
  }

  /// Returns the name that the profiler of PyTorch gives to NCCL's collective.
  private static String name(Collective collective) {
    return switch (collective) {
      case ALL_GATHER -> "_allgather_base";
      case REDUCE_SCATTER -> "_reduce_scatter_base";
      case ALL_REDUCE -> "allreduce";
      case ALL_TO_ALL -> "all_to_all";
      case BROADCAST, SEND, RECEIVE, BARRIER ->
          throw new IllegalStateException("no run of " + collective);
    };
  }

  private static String typeName(DType type) {
    return switch (type) {
      case BF16 -> "BFloat16";
      case FP16 -> "Half";
      case FP32, TF32 -> "Float";
      default ->
          throw new BraidException(
              "the type of a collective for Inductor must be fp32, fp16 or bf16 but was %s; leave it out"
                  .formatted(type));
    };
  }
}
