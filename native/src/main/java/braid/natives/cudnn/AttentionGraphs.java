package braid.natives.cudnn;

import static org.bytedeco.cuda.global.cudnn.CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC;
import static org.bytedeco.cuda.global.cudnn.CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC;
import static org.bytedeco.cuda.global.cudnn.CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC;
import static org.bytedeco.cuda.global.cudnn.CUDNN_DATA_FLOAT;
import static org.bytedeco.cuda.global.cudnn.CUDNN_DATA_INT32;
import static org.bytedeco.cuda.global.cudnn.CUDNN_DATA_INT64;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_ADD;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_CMP_GE;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_CMP_GT;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_CMP_LT;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_DIV;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_EXP;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_IDENTITY;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_LOG;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_LOGICAL_AND;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_MUL;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_SUB;
import static org.bytedeco.cuda.global.cudnn.CUDNN_REDUCE_TENSOR_ADD;
import static org.bytedeco.cuda.global.cudnn.CUDNN_REDUCE_TENSOR_MAX;

import braid.natives.cudnn.OperationGraph.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// The graphs that cuDNN recognizes as attention: their operations must be as here for its fused
/// kernels, also those that change nothing.
///
/// ```
/// scores  = scale · query · keyᵀ, masked
/// most    = max of each row
/// sum     = Σ e^(scores - most)
/// stats   = most + log(sum)
/// output  = e^(scores - most) / sum · value
/// ```
///
/// and backward, with the gradient of the output:
///
/// ```
/// weights = e^(scores - stats)
/// dValue  = weightsᵀ · dOutput
/// dScores = weights · (dOutput · valueᵀ - Σ dOutput · output) · scale
/// dKey    = dScoresᵀ · query
/// dQuery  = dScores · key
/// ```
///
/// Packed sequences have tables in memory: numbers of rows and keys, by which products end and
/// scores are masked, and offsets of each sequence in the tensors of rows, keys and statistics.
final class AttentionGraphs {
  /// Number of tables of packed sequences.
  static final int TABLES = 5;

  private static final float LEAST = -Float.MAX_VALUE;

  /// Score outside a window.
  private static final float FAR = -0x1p30f;

  private final OperationGraph graph;
  private final AttentionProblem problem;
  private final int type;
  private final Optional<Tables> tables;

  /// Tables of packed sequences.
  private record Tables(
      Tensor rows, Tensor keys, Tensor inQuery, Tensor inKey, Tensor inStatistics) {
    static Tables of(OperationGraph graph, int count) {
      return new Tables(
          graph.table("rows of each sequence", count, CUDNN_DATA_INT32),
          graph.table("keys of each sequence", count, CUDNN_DATA_INT32),
          graph.table("offsets in the query", count + 1L, CUDNN_DATA_INT64),
          graph.table("offsets in the key", count + 1L, CUDNN_DATA_INT64),
          graph.table("offsets in the statistics", count + 1L, CUDNN_DATA_INT64));
    }

    List<Tensor> all() {
      return List.of(rows, keys, inQuery, inKey, inStatistics);
    }
  }

  AttentionGraphs(OperationGraph graph, AttentionProblem problem) {
    this.graph = graph;
    this.problem = problem;
    this.type = problem.type().code();
    this.tables =
        problem.sequences().arePacked()
            ? Optional.of(Tables.of(graph, problem.sequences().count()))
            : Optional.empty();
  }

  private Layout ofQuery() {
    var sequences = problem.sequences();
    return Layout.ofTokens(
        sequences.count(), sequences.rows(), problem.heads(), problem.rows(), problem.headSize());
  }

  private Layout ofKey(int heads) {
    var sequences = problem.sequences();
    return Layout.ofTokens(
        sequences.count(), sequences.keys(), heads, problem.keys(), problem.headSize());
  }

  /// A number of each row and head: row by row if packed. Of one sequence cuDNN supports no other
  /// order than head by head.
  private Layout ofStatistics() {
    var sequences = problem.sequences();
    return sequences.arePacked()
        ? Layout.ofTokens(sequences.count(), sequences.rows(), problem.heads(), problem.rows(), 1)
        : perRow();
  }

  /// A number of each row and head between operations.
  private Layout perRow() {
    return packed(problem.rows(), 1);
  }

  private Layout ofScores() {
    return packed(problem.rows(), problem.keys());
  }

  private Layout packed(int rows, int columns) {
    return Layout.packed(problem.sequences().count(), problem.heads(), rows, columns);
  }

  /// @param stride numbers from row to row; 0 for no gaps
  private Tensor inRows(String name, long stride) {
    var layout = ofQuery().apart(stride);
    return graph.tensor(name, layout, type, tables.map(Tables::inQuery).orElse(null));
  }

  private Tensor inKeys(String name, Layout layout) {
    return graph.tensor(name, layout, type, tables.map(Tables::inKey).orElse(null));
  }

  private Tensor inStatistics(String name) {
    return graph.tensor(
        name, ofStatistics(), CUDNN_DATA_FLOAT, tables.map(Tables::inStatistics).orElse(null));
  }

  /// Returns the operands in memory, in the order of the plan's addresses, and then the tensors of
  /// the workspace.
  private List<Tensor> inMemory(List<Tensor> operands, List<Tensor> workspace) {
    var all = new ArrayList<>(operands);
    tables.ifPresent(each -> all.addAll(each.all()));
    all.addAll(workspace);
    return all;
  }

  List<Tensor> forward() {
    var strides = problem.strides();
    var query = inRows("query", strides.query());
    var key = inKeys("key", ofKey(problem.kvHeads()).apart(strides.key()).transposed());
    var value = inKeys("value", ofKey(problem.kvHeads()).apart(strides.value()));
    var output = inRows("output", 0);
    var stats = inStatistics("statistics");

    var scores = mask(maskSequences(scores(query, key, scale())));
    var most =
        graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, graph.between(perRow(), CUDNN_DATA_FLOAT));
    var weights = graph.each(CUDNN_POINTWISE_EXP, graph.each(CUDNN_POINTWISE_SUB, scores, most));
    var sum =
        graph.reduce(CUDNN_REDUCE_TENSOR_ADD, weights, graph.between(perRow(), CUDNN_DATA_FLOAT));
    graph.eachInto(stats, CUDNN_POINTWISE_ADD, most, graph.each(CUDNN_POINTWISE_LOG, sum));
    var narrow = graph.between(ofScores(), type);
    graph.eachInto(narrow, CUDNN_POINTWISE_DIV, weights, sum);
    perRows(narrow, value, output);
    return inMemory(List.of(query, key, value, output, stats), List.of());
  }

  /// @param deterministic true to keep the gradient of the scores in memory, of which there are
  ///   rows × keys per head; otherwise the gradient of the query is summed in any order
  List<Tensor> backward(boolean deterministic) {
    var strides = problem.strides();
    var query = inRows("query", strides.query());
    var key = inKeys("key", ofKey(problem.kvHeads()).apart(strides.key()).transposed());
    var value = inKeys("value", ofKey(problem.kvHeads()).apart(strides.value()).transposed());
    var output = inRows("output", 0);
    var dOutput = inRows("gradient of the output", strides.outputGradient());
    var stats = inStatistics("statistics");
    var dQuery = inRows("gradient of the query", strides.queryGradient());
    var dKey = inKeys("gradient of the key", ofKey(problem.kvHeads()).apart(strides.keyGradient()));
    var dValue =
        inKeys("gradient of the value", ofKey(problem.kvHeads()).apart(strides.valueGradient()));
    var workspace = new ArrayList<Tensor>();
    var sums = inStatistics("sums");
    workspace.add(sums);

    var products = graph.between(ofQuery(), CUDNN_DATA_FLOAT);
    graph.eachInto(products, CUDNN_POINTWISE_MUL, dOutput, output);
    var sum =
        graph.reduce(CUDNN_REDUCE_TENSOR_ADD, products, graph.between(perRow(), CUDNN_DATA_FLOAT));
    graph.eachInto(sums, CUDNN_POINTWISE_MUL, sum, graph.constant(1f));

    var scale = scale();
    var scores = maskSequences(scores(query, key, scale));
    var weights =
        graph.each(CUDNN_POINTWISE_EXP, mask(graph.each(CUDNN_POINTWISE_SUB, scores, stats)));
    toKeys(weights, dOutput, dValue, workspace);

    var dWeights = perPair(dOutput, value, graph.between(ofScores(), CUDNN_DATA_FLOAT));
    var dScores =
        graph.each(
            CUDNN_POINTWISE_MUL,
            graph.each(
                CUDNN_POINTWISE_MUL, graph.each(CUDNN_POINTWISE_SUB, dWeights, sums), weights),
            scale);
    toKeys(dScores, query, dKey, workspace);

    var keys =
        graph.reshape(
            key,
            ofKey(problem.kvHeads()).apart(strides.key()),
            type,
            tables.map(Tables::inKey).orElse(null));
    if (deterministic) {
      perRows(dScores, keys, dQuery);
    } else {
      var wide =
          graph.tensor(
              "gradient of the query in fp32",
              tables.isPresent() ? ofQuery() : packed(problem.rows(), problem.headSize()),
              CUDNN_DATA_FLOAT,
              tables.map(Tables::inQuery).orElse(null));
      workspace.add(wide);
      perRows(dScores, keys, wide);
      graph.eachInto(dQuery, CUDNN_POINTWISE_IDENTITY, wide);
    }
    return inMemory(
        List.of(query, key, value, output, dOutput, stats, dQuery, dKey, dValue), workspace);
  }

  /// Multiplies the transposed of some numbers per row and key by the rows, and sums the heads that
  /// share a head of key and value.
  private void toKeys(Tensor operand, Tensor rows, Tensor result, List<Tensor> workspace) {
    var transposed = graph.reshape(operand, ofScores().transposed(), type, null);
    if (problem.heads() == problem.kvHeads()) {
      perKeys(transposed, rows, result);
      return;
    }
    // Packed sequences of any lengths need less memory in one row per key.
    var perHead =
        tables.isPresent()
            ? inKeys("gradient of each head", ofKey(problem.heads()))
            : graph.between(packed(problem.keys(), problem.headSize()), type);
    if (tables.isPresent()) {
      workspace.add(perHead);
    }
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, perKeys(transposed, rows, perHead), result);
  }

  private Tensor scale() {
    return graph.constant(problem.scale());
  }

  private Tensor scores(Tensor query, Tensor key, Tensor scale) {
    var products = graph.between(ofScores(), CUDNN_DATA_FLOAT);
    return graph.each(CUDNN_POINTWISE_MUL, perPair(query, key, products), scale);
  }

  /// A product of rows × keys.
  private Tensor perPair(Tensor a, Tensor b, Tensor result) {
    return multiply(
        a,
        b,
        result,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC);
  }

  /// A product of rows, summed over keys.
  private Tensor perRows(Tensor a, Tensor b, Tensor result) {
    return multiply(
        a,
        b,
        result,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC);
  }

  /// A product of keys, summed over rows.
  private Tensor perKeys(Tensor a, Tensor b, Tensor result) {
    return multiply(
        a,
        b,
        result,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC);
  }

  /// @param rows attribute of the product's size that is the number of rows
  /// @param keys attribute of the product's size that is the number of keys
  private Tensor multiply(Tensor a, Tensor b, Tensor result, int rows, int keys) {
    return graph.multiply(
        a,
        b,
        result,
        tables.map(each -> Map.of(rows, each.rows(), keys, each.keys())).orElse(Map.of()));
  }

  /// Keeps the scores of the rows and keys that a packed sequence has.
  private Tensor maskSequences(Tensor scores) {
    if (tables.isEmpty()) {
      return scores;
    }
    var row = graph.index(scores, OperationGraph.ROWS, CUDNN_DATA_INT32);
    var column = graph.index(scores, OperationGraph.COLUMNS, CUDNN_DATA_INT32);
    var inRows = graph.compare(CUDNN_POINTWISE_CMP_LT, row, tables.get().rows());
    var inKeys = graph.compare(CUDNN_POINTWISE_CMP_LT, column, tables.get().keys());
    return graph.select(graph.compare(CUDNN_POINTWISE_LOGICAL_AND, inRows, inKeys), scores, LEAST);
  }

  /// Keeps the scores of key ≤ row + shift, and of key > row + shift - window.
  private Tensor mask(Tensor scores) {
    if (!problem.masks()) {
      return scores;
    }
    var row = graph.index(scores, OperationGraph.ROWS, CUDNN_DATA_INT32);
    var column = graph.index(scores, OperationGraph.COLUMNS, CUDNN_DATA_INT32);
    if (problem.shift() > 0) {
      row = graph.addToRows(row, problem.shift());
    }
    var masked = graph.select(graph.compare(CUDNN_POINTWISE_CMP_GE, row, column), scores, LEAST);
    if (problem.window() == 0) {
      return masked;
    }
    var query = graph.index(masked, OperationGraph.ROWS, CUDNN_DATA_FLOAT);
    var key =
        graph.addToColumns(
            graph.index(masked, OperationGraph.COLUMNS, CUDNN_DATA_FLOAT),
            problem.window() - problem.shift());
    return graph.select(graph.compare(CUDNN_POINTWISE_CMP_GT, key, query), masked, FAR);
  }
}
