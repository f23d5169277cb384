package braid.natives.cudnn;

import braid.natives.cuda.GpuError;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.bytedeco.cuda.global.cudnn;
import org.jspecify.annotations.Nullable;

/// Operations on tensors, which cuDNN runs as one kernel or a few. Tensors between operations are
/// virtual: they are never in memory.
///
/// Owns all descriptors.
final class OperationGraph implements AutoCloseable {
  private static final int ALIGNMENT_BYTES = 16;

  /// Names of the two axes of a head's matrix.
  static final int ROWS = 2;

  static final int COLUMNS = 3;

  private final Cudnn owner;
  private final Deque<Descriptor> descriptors = new ArrayDeque<>();
  private final List<Descriptor> operations = new ArrayList<>();

  /// Values that are passed with each execution, by the number of their tensor.
  private final Map<Long, MemorySegment> constants = new LinkedHashMap<>();

  private final Arena values = Arena.ofAuto();
  private long tensors;

  record Tensor(Descriptor descriptor, long number, Layout layout) {}

  OperationGraph(Cudnn owner) {
    this.owner = owner;
  }

  Map<Long, MemorySegment> constants() {
    return constants;
  }

  private Descriptor create(int type, String name) {
    var created = new Descriptor(owner, type, name);
    descriptors.push(created);
    return created;
  }

  /// A tensor in memory.
  ///
  /// @param offsets numbers before each sequence; null if there is one sequence
  Tensor tensor(String name, Layout layout, int type, @Nullable Tensor offsets) {
    return tensor(name, layout, type, false, false, offsets);
  }

  /// A number of each sequence in memory.
  Tensor table(String name, long count, int type) {
    return tensor(name, new Layout(count, 1, 1, 1, 1, 1, 1, count), type, null);
  }

  /// A tensor between operations.
  Tensor between(Layout layout, int type) {
    return between(layout, type, null);
  }

  private Tensor between(Layout layout, int type, @Nullable Tensor offsets) {
    return tensor("a tensor between operations", layout, type, true, false, offsets);
  }

  Tensor constant(float value) {
    var constant = scalar(cudnn.CUDNN_DATA_FLOAT);
    constants.put(constant.number, values.allocateFrom(ValueLayout.JAVA_FLOAT, value));
    return constant;
  }

  Tensor constant(int value) {
    var constant = scalar(cudnn.CUDNN_DATA_INT32);
    constants.put(constant.number, values.allocateFrom(ValueLayout.JAVA_INT, value));
    return constant;
  }

  private Tensor scalar(int type) {
    return tensor("a constant", Layout.packed(1, 1, 1, 1), type, false, true, null);
  }

  private Tensor tensor(
      String name,
      Layout layout,
      int type,
      boolean virtual,
      boolean constant,
      @Nullable Tensor offsets) {
    long number = ++tensors;
    var descriptor =
        create(cudnn.CUDNN_BACKEND_TENSOR_DESCRIPTOR, name)
            .longs(cudnn.CUDNN_ATTR_TENSOR_UNIQUE_ID, number)
            .choice(cudnn.CUDNN_ATTR_TENSOR_DATA_TYPE, cudnn.CUDNN_TYPE_DATA_TYPE, type)
            .longs(cudnn.CUDNN_ATTR_TENSOR_DIMENSIONS, layout.sizes())
            .longs(cudnn.CUDNN_ATTR_TENSOR_STRIDES, layout.strides())
            .longs(cudnn.CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGNMENT_BYTES)
            .flag(cudnn.CUDNN_ATTR_TENSOR_IS_VIRTUAL, virtual)
            .flag(cudnn.CUDNN_ATTR_TENSOR_IS_BY_VALUE, constant);
    if (offsets != null) {
      descriptor.one(cudnn.CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, offsets.descriptor);
    }
    return new Tensor(descriptor.finish(), number, layout);
  }

  /// A function of each number, in fp32.
  ///
  /// @param mode a `CUDNN_POINTWISE_*`
  Tensor each(int mode, Tensor operand) {
    return each(mode, operand, null, null, like(operand), cudnn.CUDNN_DATA_FLOAT, -1);
  }

  Tensor each(int mode, Tensor operand, Tensor and) {
    return each(mode, operand, and, null, like(operand), cudnn.CUDNN_DATA_FLOAT, -1);
  }

  void eachInto(Tensor result, int mode, Tensor operand) {
    each(mode, operand, null, null, result, cudnn.CUDNN_DATA_FLOAT, -1);
  }

  void eachInto(Tensor result, int mode, Tensor operand, Tensor and) {
    each(mode, operand, and, null, result, cudnn.CUDNN_DATA_FLOAT, -1);
  }

  /// Index of each number's row or column.
  ///
  /// @param type of the index
  Tensor index(Tensor operand, int axis, int type) {
    return each(
        cudnn.CUDNN_POINTWISE_GEN_INDEX,
        operand,
        null,
        null,
        between(operand.layout, type),
        type,
        axis);
  }

  Tensor addToRows(Tensor index, int shift) {
    return each(
        cudnn.CUDNN_POINTWISE_ADD,
        index,
        constant(shift),
        null,
        between(index.layout, cudnn.CUDNN_DATA_INT32),
        cudnn.CUDNN_DATA_INT32,
        -1);
  }

  /// In fp32, as cuDNN recognizes a window by it.
  Tensor addToColumns(Tensor index, float shift) {
    return each(
        cudnn.CUDNN_POINTWISE_ADD,
        index,
        constant(shift),
        null,
        like(index),
        cudnn.CUDNN_DATA_FLOAT,
        COLUMNS);
  }

  /// A condition on each number of `one`, by a comparison or a logical operation.
  Tensor compare(int mode, Tensor one, Tensor other) {
    return each(
        mode,
        one,
        other,
        null,
        between(one.layout, cudnn.CUDNN_DATA_BOOLEAN),
        cudnn.CUDNN_DATA_BOOLEAN,
        -1);
  }

  /// The numbers for which the condition holds, and `otherwise` in place of the others.
  Tensor select(Tensor condition, Tensor operand, float otherwise) {
    return each(
        cudnn.CUDNN_POINTWISE_BINARY_SELECT,
        operand,
        constant(otherwise),
        condition,
        like(operand),
        cudnn.CUDNN_DATA_FLOAT,
        -1);
  }

  private Tensor like(Tensor other) {
    return between(other.layout, cudnn.CUDNN_DATA_FLOAT);
  }

  private Tensor each(
      int mode,
      Tensor operand,
      @Nullable Tensor and,
      @Nullable Tensor condition,
      Tensor result,
      int computeType,
      int axis) {
    var name = "pointwise operation " + mode;
    var function =
        create(cudnn.CUDNN_BACKEND_POINTWISE_DESCRIPTOR, name)
            .choice(cudnn.CUDNN_ATTR_POINTWISE_MODE, cudnn.CUDNN_TYPE_POINTWISE_MODE, mode)
            .choice(cudnn.CUDNN_ATTR_POINTWISE_MATH_PREC, cudnn.CUDNN_TYPE_DATA_TYPE, computeType);
    if (axis >= 0) {
      function.longs(cudnn.CUDNN_ATTR_POINTWISE_AXIS, axis);
    }
    function.finish();
    var operation =
        create(cudnn.CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, name)
            .one(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
            .one(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_XDESC, operand.descriptor)
            .one(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result.descriptor);
    if (and != null) {
      operation.one(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_BDESC, and.descriptor);
    }
    if (condition != null) {
      operation.one(cudnn.CUDNN_ATTR_OPERATION_POINTWISE_TDESC, condition.descriptor);
    }
    operations.add(operation.finish());
    return result;
  }

  /// Multiplies the matrices of each head. Heads of `b` are shared by groups of heads of `a`.
  ///
  /// @param sizes rows, columns or terms of each sequence, by `CUDNN_ATTR_*_OVERRIDE_DESC`; others
  ///   are those of the tensors
  Tensor multiply(Tensor a, Tensor b, Tensor result, Map<Integer, Tensor> sizes) {
    var descriptor =
        create(cudnn.CUDNN_BACKEND_MATMUL_DESCRIPTOR, "multiplication")
            .choice(
                cudnn.CUDNN_ATTR_MATMUL_COMP_TYPE,
                cudnn.CUDNN_TYPE_DATA_TYPE,
                cudnn.CUDNN_DATA_FLOAT)
            .finish();
    var operation =
        create(cudnn.CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "multiplication")
            .one(cudnn.CUDNN_ATTR_OPERATION_MATMUL_DESC, descriptor)
            .one(cudnn.CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor)
            .one(cudnn.CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor)
            .one(cudnn.CUDNN_ATTR_OPERATION_MATMUL_CDESC, result.descriptor);
    sizes.forEach((attribute, size) -> operation.one(attribute, size.descriptor));
    operations.add(operation.finish());
    return result;
  }

  /// Reduces each dimension in which the result has one number.
  ///
  /// @param operator a `CUDNN_REDUCE_TENSOR_*`
  Tensor reduce(int operator, Tensor operand, Tensor result) {
    var descriptor =
        create(cudnn.CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction")
            .choice(
                cudnn.CUDNN_ATTR_REDUCTION_OPERATOR,
                cudnn.CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                operator)
            .choice(
                cudnn.CUDNN_ATTR_REDUCTION_COMP_TYPE,
                cudnn.CUDNN_TYPE_DATA_TYPE,
                cudnn.CUDNN_DATA_FLOAT)
            .finish();
    operations.add(
        create(cudnn.CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction")
            .one(cudnn.CUDNN_ATTR_OPERATION_REDUCTION_DESC, descriptor)
            .one(cudnn.CUDNN_ATTR_OPERATION_REDUCTION_XDESC, operand.descriptor)
            .one(cudnn.CUDNN_ATTR_OPERATION_REDUCTION_YDESC, result.descriptor)
            .finish());
    return result;
  }

  /// Another view of the same numbers; for a virtual one also in another type.
  Tensor reshape(Tensor operand, Layout layout, int type, @Nullable Tensor offsets) {
    var result = between(layout, type, offsets);
    operations.add(
        create(cudnn.CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshape")
            .one(cudnn.CUDNN_ATTR_OPERATION_RESHAPE_XDESC, operand.descriptor)
            .one(cudnn.CUDNN_ATTR_OPERATION_RESHAPE_YDESC, result.descriptor)
            .finish());
    return result;
  }

  /// Returns the first plan that cuDNN's heuristic proposes and can build.
  ///
  /// @throws GpuError if there is none
  Descriptor plan() {
    var graph =
        create(cudnn.CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph")
            .handle(cudnn.CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
            .all(cudnn.CUDNN_ATTR_OPERATIONGRAPH_OPS, operations)
            .finish();
    var heuristic =
        create(cudnn.CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristic")
            .one(cudnn.CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
            .choice(
                cudnn.CUDNN_ATTR_ENGINEHEUR_MODE,
                cudnn.CUDNN_TYPE_HEUR_MODE,
                cudnn.CUDNN_HEUR_MODE_A)
            .finish();
    var engines = new ArrayList<Descriptor>();
    int proposed = heuristic.count(cudnn.CUDNN_ATTR_ENGINEHEUR_RESULTS);
    for (int i = 0; i < proposed; i++) {
      engines.add(create(cudnn.CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine"));
    }
    int usable = proposed == 0 ? 0 : heuristic.get(cudnn.CUDNN_ATTR_ENGINEHEUR_RESULTS, engines);
    GpuError last = null;
    for (var engine : engines.subList(0, usable)) {
      try {
        return create(cudnn.CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan")
            .handle(cudnn.CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
            .one(cudnn.CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine)
            .finish();
      } catch (GpuError e) {
        last = e;
      }
    }
    throw last != null
        ? last
        : owner.error("the heuristic", cudnn.CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN);
  }

  @Override
  public void close() {
    while (!descriptors.isEmpty()) {
      descriptors.pop().close();
    }
  }
}
