package braid.natives.cudnn;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuError;
import braid.natives.cuda.GpuStream;
import braid.natives.load.Feature;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.bytedeco.cuda.cudnn.cudnnContext;
import org.bytedeco.cuda.global.cudnn;

/// cuDNN's attention on one GPU. Plans are built once per problem and kept: building one can take a
/// second, since cuDNN compiles. Thread-safe.
public final class Cudnn implements AutoCloseable {
  private static final int MESSAGE_BYTES = 4096;
  private static final int PACKED_BACKWARD_MULTIPLE = 16;

  private final Gpu gpu;
  private final cudnnContext handle;
  private final String version;
  private final Map<Key, Outcome> outcomes = new HashMap<>();
  private boolean closed;

  enum Direction {
    FORWARD(5),
    BACKWARD(9),
    DETERMINISTIC_BACKWARD(9);

    private final int operands;

    Direction(int operands) {
      this.operands = operands;
    }
  }

  private record Key(AttentionProblem problem, Direction direction) {}

  private record Outcome(Optional<AttentionPlan> plan, String reason) {}

  private Cudnn(Gpu gpu, cudnnContext handle, String version) {
    this.gpu = gpu;
    this.handle = handle;
    this.version = version;
  }

  /// Loads the library and creates a handle on this GPU.
  ///
  /// @throws braid.natives.load.BraidNativeMissing if it is not available
  public static Cudnn open(Gpu gpu) {
    var library = Libraries.require(Library.CUDNN);
    gpu.use();
    var handle = new cudnnContext();
    check(gpu, "cudnnCreate", cudnn.cudnnCreate(handle));
    return new Cudnn(gpu, handle, library.version());
  }

  /// Version of the library: `9.19.0`.
  public String version() {
    return version;
  }

  /// Returns why cuDNN cannot compute this attention, in one line; empty if it can. Builds the
  /// plan.
  public Optional<String> cannot(AttentionProblem problem) {
    return because(outcome(new Key(problem, Direction.FORWARD)));
  }

  public Optional<String> cannotBackward(AttentionProblem problem, boolean deterministic) {
    return because(outcome(new Key(problem, backward(deterministic))));
  }

  private static Optional<String> because(Outcome outcome) {
    return outcome.plan.isPresent() ? Optional.empty() : Optional.of(outcome.reason);
  }

  private static Direction backward(boolean deterministic) {
    return deterministic ? Direction.DETERMINISTIC_BACKWARD : Direction.BACKWARD;
  }

  /// Returns the plan of the output and of the statistics: the log-sum-exp of the scores of each
  /// head and row, head by head. The addresses of its runs are those of query, key, value, output
  /// and statistics.
  ///
  /// The statistics of packed sequences are row by row, and more addresses follow, of tables:
  /// numbers of rows and of keys (32 bits each), and the offsets (64 bits each) of all sequences
  /// and of their end in the query, the key, and the statistics, in numbers.
  ///
  /// @throws IllegalArgumentException if cuDNN cannot compute it
  public AttentionPlan forward(AttentionProblem problem) {
    return plan(new Key(problem, Direction.FORWARD));
  }

  /// Returns the plan of the gradients. The addresses of its runs are those of query, key, value,
  /// output, the output's gradient, statistics, and of the gradients of query, key and value; then
  /// those of the tables of packed sequences.
  ///
  /// @param deterministic true for equal results of equal runs; needs memory for a number per head,
  ///   row and key
  /// @throws IllegalArgumentException if cuDNN cannot compute it
  public AttentionPlan backward(AttentionProblem problem, boolean deterministic) {
    return plan(new Key(problem, backward(deterministic)));
  }

  private AttentionPlan plan(Key key) {
    var outcome = outcome(key);
    return outcome.plan.orElseThrow(() -> new IllegalArgumentException(outcome.reason));
  }

  private synchronized Outcome outcome(Key key) {
    var known = outcomes.get(key);
    if (known == null) {
      known = build(key);
      outcomes.put(key, known);
    }
    return known;
  }

  private Optional<String> rule(Key key) {
    var feature =
        key.problem.sequences().arePacked()
            ? Feature.PACKED_ATTENTION
            : key.direction == Direction.FORWARD ? Feature.ATTENTION : Feature.ATTENTION_BACKWARD;
    return feature
        .refusal(version)
        .map(reason -> feature.title() + " " + reason)
        .or(() -> key.problem.refusal(gpu.architecture()))
        .or(() -> packedRefusal(key.problem, key.direction));
  }

  /// Returns why cuDNN is not asked for several sequences; empty if it is or if there is one.
  static Optional<String> packedRefusal(AttentionProblem problem, Direction direction) {
    boolean several = problem.sequences().count() > 1;
    boolean isForward = direction == Direction.FORWARD;
    if (several && isForward && problem.rows() == 1 && problem.heads() != problem.kvHeads()) {
      // cuDNN accepts them, but writes the statistics of the first head of each group only if they
      // have tables; equal ones were not tried.
      return Optional.of(
          "packed sequences of one row each must have a head of key and value per head but have %d per %d heads"
              .formatted(problem.kvHeads(), problem.heads()));
    }
    if (isForward || !problem.sequences().arePacked()) {
      return Optional.empty();
    }
    // cuDNN accepts other sizes, but leaves out part of the query's gradient if its fp32 sum is
    // packed.
    int headSize = problem.headSize();
    if (headSize % PACKED_BACKWARD_MULTIPLE != 0) {
      return Optional.of(
          "headSize must be a multiple of %d for gradients of packed sequences but was %d"
              .formatted(PACKED_BACKWARD_MULTIPLE, headSize));
    }
    return direction == Direction.DETERMINISTIC_BACKWARD
        ? Optional.of("gradients of packed sequences are not deterministic")
        : Optional.empty();
  }

  private Outcome build(Key key) {
    var rule = rule(key);
    if (rule.isPresent()) {
      return new Outcome(Optional.empty(), rule.get());
    }
    gpu.use();
    var graph = new OperationGraph(this);
    try {
      var tensors =
          switch (key.direction) {
            case FORWARD -> new AttentionGraphs(graph, key.problem).forward();
            case BACKWARD -> new AttentionGraphs(graph, key.problem).backward(false);
            case DETERMINISTIC_BACKWARD -> new AttentionGraphs(graph, key.problem).backward(true);
          };
      int operands =
          key.direction.operands
              + (key.problem.sequences().arePacked() ? AttentionGraphs.TABLES : 0);
      return new Outcome(Optional.of(new AttentionPlan(this, graph, tensors, operands)), "");
    } catch (GpuError e) {
      graph.close();
      if (!isRefusal(e.code())) {
        throw e;
      }
      return new Outcome(
          Optional.empty(),
          "cuDNN %s has no plan for %s: %s".formatted(version, key.problem, e.getMessage()));
    }
  }

  /// Returns whether the status is that of something that cuDNN does not support, and not of a
  /// failure.
  static boolean isRefusal(int status) {
    return status >= cudnn.CUDNN_STATUS_BAD_PARAM && status < cudnn.CUDNN_STATUS_INTERNAL_ERROR;
  }

  /// Enqueues a plan. The stream of the handle is that of the last call.
  synchronized void execute(GpuStream stream, Descriptor plan, Descriptor addresses) {
    check("cudnnSetStream", cudnn.cudnnSetStream(handle, stream.pointer()));
    check(
        "cudnnBackendExecute",
        cudnn.cudnnBackendExecute(handle, plan.pointer(), addresses.pointer()));
  }

  Gpu gpu() {
    return gpu;
  }

  cudnnContext handle() {
    return handle;
  }

  void check(String call, int status) {
    check(gpu, call, status);
  }

  private static void check(Gpu gpu, String call, int status) {
    if (status != cudnn.CUDNN_STATUS_SUCCESS) {
      throw error(gpu, call, status);
    }
  }

  GpuError error(String call, int status) {
    return error(gpu, call, status);
  }

  private static GpuError error(Gpu gpu, String call, int status) {
    return new GpuError(
        call,
        status,
        cudnn.cudnnGetErrorString(status).getString(),
        lastMessage(),
        gpu.where(),
        remedy(status));
  }

  private static String lastMessage() {
    var text = new byte[MESSAGE_BYTES];
    cudnn.cudnnGetLastErrorString(text, MESSAGE_BYTES);
    int end = 0;
    while (end < text.length && text[end] != 0) {
      end++;
    }
    var message =
        new String(text, 0, end, StandardCharsets.UTF_8).strip().replaceAll("\\s*\n\\s*", ", ");
    return message.isEmpty() ? "no reason given" : message;
  }

  private static String remedy(int status) {
    return switch (status) {
      case cudnn.CUDNN_STATUS_NOT_INITIALIZED,
          cudnn.CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ->
          "free memory on the device";
      case cudnn.CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH,
          cudnn.CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED ->
          "install all files of one version of cuDNN in one folder";
      case cudnn.CUDNN_STATUS_EXECUTION_FAILED, cudnn.CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER ->
          "earlier work on this device may have failed; restart the ranks";
      default -> "";
    };
  }

  /// Closes all plans and the handle.
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      gpu.use();
      outcomes.values().forEach(each -> each.plan.ifPresent(AttentionPlan::close));
      outcomes.clear();
      check("cudnnDestroy", cudnn.cudnnDestroy(handle));
    }
  }
}
