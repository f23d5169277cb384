package braid.natives.cudnn;

import braid.natives.cuda.GpuGraph;
import braid.natives.cuda.GpuStream;
import braid.natives.cudnn.OperationGraph.Tensor;
import java.util.List;
import org.bytedeco.cuda.global.cudnn;

/// A graph that cuDNN has compiled. Closed with its [Cudnn].
public final class AttentionPlan {
  private static final long ALIGNMENT_BYTES = 256;

  /// Operands are at multiples of this.
  public static final long OPERAND_ALIGNMENT_BYTES = 16;

  private final Cudnn owner;
  private final OperationGraph graph;
  private final List<Tensor> tensors;
  private final Descriptor plan;
  private final long ownBytes;
  private final int operands;
  private final long[] numbers;
  private final long[] addresses;
  private boolean isLoaded;

  /// @param tensors operands, and then tensors of at most 4 bytes a number that are in the
  ///   workspace
  AttentionPlan(Cudnn owner, OperationGraph graph, List<Tensor> tensors, int operands) {
    this.owner = owner;
    this.graph = graph;
    this.tensors = tensors;
    this.operands = operands;
    this.plan = graph.plan();
    this.ownBytes = aligned(plan.number(cudnn.CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
    var constants = graph.constants();
    numbers = new long[tensors.size() + constants.size()];
    addresses = new long[numbers.length];
    int i = 0;
    for (var tensor : tensors) {
      numbers[i++] = tensor.number();
    }
    for (var constant : constants.entrySet()) {
      numbers[i] = constant.getKey();
      addresses[i++] = constant.getValue().address();
    }
  }

  private static long aligned(long bytes) {
    return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
  }

  private static long bytes(Tensor own) {
    return aligned(own.layout().numbers() * Float.BYTES);
  }

  /// Memory that a run needs, at a multiple of 256 bytes.
  public long workspaceBytes() {
    return ownBytes
        + tensors.subList(operands, tensors.size()).stream().mapToLong(AttentionPlan::bytes).sum();
  }

  /// Loads the kernels by capturing a run that is never launched. Later calls do nothing. Without
  /// this the first run loads them: the driver may then wait for all streams, one of which may wait
  /// for a rank that does the same.
  ///
  /// @param operands as of a run; nothing is read or written there
  public synchronized void load(long workspace, long... operands) {
    if (isLoaded) {
      return;
    }
    try (var stream = owner.gpu().stream(0)) {
      try (var graph = capture(stream, workspace, operands)) {
        graph.upload(stream);
        stream.synchronize();
      }
    }
    isLoaded = true;
  }

  private GpuGraph capture(GpuStream stream, long workspace, long... operands) {
    stream.beginCapture();
    try {
      run(stream, workspace, operands);
    } catch (RuntimeException | Error e) {
      try {
        stream.endCapture().close();
      } catch (RuntimeException second) {
        e.addSuppressed(second);
      }
      throw e;
    }
    return stream.endCapture();
  }

  /// Enqueues the attention.
  ///
  /// @param operands addresses at multiples of 16 bytes, in the order that [Cudnn] names
  public void run(GpuStream stream, long workspace, long... operands) {
    if (operands.length != this.operands) {
      throw new IllegalArgumentException(
          "%d addresses were expected but there are %d".formatted(this.operands, operands.length));
    }
    for (int i = 0; i < operands.length; i++) {
      if (operands[i] == 0 || operands[i] % OPERAND_ALIGNMENT_BYTES != 0) {
        throw new IllegalArgumentException(
            "operand %d is at 0x%x and must be at a multiple of %d bytes"
                .formatted(i, operands[i], OPERAND_ALIGNMENT_BYTES));
      }
    }
    owner.gpu().use();
    synchronized (this) {
      System.arraycopy(operands, 0, addresses, 0, operands.length);
      long next = workspace + ownBytes;
      for (int i = operands.length; i < tensors.size(); i++) {
        addresses[i] = next;
        next += bytes(tensors.get(i));
      }
      try (var pack =
          new Descriptor(owner, cudnn.CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "addresses")) {
        pack.longs(cudnn.CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers)
            .pointers(cudnn.CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses)
            .pointers(cudnn.CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace)
            .finish();
        owner.execute(stream, plan, pack);
      }
    }
  }

  void close() {
    graph.close();
  }
}
