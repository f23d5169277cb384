package braid.natives.cudnn;

import static org.bytedeco.cuda.global.cudnn.CUDNN_DATA_FLOAT;
import static org.bytedeco.cuda.global.cudnn.CUDNN_DATA_INT32;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_ADD;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_CMP_GE;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_CMP_GT;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_DIV;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_EXP;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_IDENTITY;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_LOG;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_MUL;
import static org.bytedeco.cuda.global.cudnn.CUDNN_POINTWISE_SUB;
import static org.bytedeco.cuda.global.cudnn.CUDNN_REDUCE_TENSOR_ADD;
import static org.bytedeco.cuda.global.cudnn.CUDNN_REDUCE_TENSOR_MAX;

import braid.natives.cudnn.OperationGraph.Tensor;
import java.util.List;

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
final class AttentionGraphs {
  private static final float LEAST = -Float.MAX_VALUE;

  /// Score outside a window.
  private static final float FAR = -0x1p30f;

  private AttentionGraphs() {}

  static Layout ofQuery(AttentionProblem problem) {
    return Layout.ofTokens(problem.heads(), problem.rows(), problem.headSize());
  }

  static Layout ofKey(AttentionProblem problem) {
    return Layout.ofTokens(problem.kvHeads(), problem.keys(), problem.headSize());
  }

  /// A number of each row and head. cuDNN supports no other order than head by head.
  static Layout ofStatistics(AttentionProblem problem) {
    return Layout.packed(problem.heads(), problem.rows(), 1);
  }

  private static Layout ofScores(AttentionProblem problem) {
    return Layout.packed(problem.heads(), problem.rows(), problem.keys());
  }

  /// Tensors in memory, in the order of the plan's addresses.
  static List<Tensor> forward(OperationGraph graph, AttentionProblem problem) {
    int type = problem.type().code();
    var statistics = ofStatistics(problem);
    var query = graph.tensor("query", ofQuery(problem), type);
    var key = graph.tensor("key", ofKey(problem).transposed(), type);
    var value = graph.tensor("value", ofKey(problem), type);
    var output = graph.tensor("output", ofQuery(problem), type);
    var stats = graph.tensor("statistics", statistics, CUDNN_DATA_FLOAT);

    var scores = mask(graph, problem, scores(graph, problem, query, key, scale(graph, problem)));
    var most =
        graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, graph.between(statistics, CUDNN_DATA_FLOAT));
    var weights = graph.each(CUDNN_POINTWISE_EXP, graph.each(CUDNN_POINTWISE_SUB, scores, most));
    var sum =
        graph.reduce(CUDNN_REDUCE_TENSOR_ADD, weights, graph.between(statistics, CUDNN_DATA_FLOAT));
    graph.eachInto(stats, CUDNN_POINTWISE_ADD, most, graph.each(CUDNN_POINTWISE_LOG, sum));
    var narrow = graph.between(ofScores(problem), type);
    graph.eachInto(narrow, CUDNN_POINTWISE_DIV, weights, sum);
    graph.multiply(narrow, value, output);
    return List.of(query, key, value, output, stats);
  }

  /// Tensors in memory, in the order of the plan's addresses.
  ///
  /// @param deterministic true to keep the gradient of the scores in memory, of which there are
  ///   rows × keys per head; otherwise the gradient of the query is summed in any order
  static List<Tensor> backward(
      OperationGraph graph, AttentionProblem problem, boolean deterministic) {
    int type = problem.type().code();
    var statistics = ofStatistics(problem);
    var query = graph.tensor("query", ofQuery(problem), type);
    var key = graph.tensor("key", ofKey(problem).transposed(), type);
    var value = graph.tensor("value", ofKey(problem).transposed(), type);
    var output = graph.tensor("output", ofQuery(problem), type);
    var dOutput = graph.tensor("gradient of the output", ofQuery(problem), type);
    var stats = graph.tensor("statistics", statistics, CUDNN_DATA_FLOAT);
    var dQuery = graph.tensor("gradient of the query", ofQuery(problem), type);
    var dKey = graph.tensor("gradient of the key", ofKey(problem), type);
    var dValue = graph.tensor("gradient of the value", ofKey(problem), type);
    var sums = graph.tensor("sums", statistics, CUDNN_DATA_FLOAT);
    var dQueryWide =
        graph.tensor(
            "gradient of the query in fp32",
            Layout.packed(problem.heads(), problem.rows(), problem.headSize()),
            CUDNN_DATA_FLOAT);

    var products = graph.between(ofQuery(problem), CUDNN_DATA_FLOAT);
    graph.eachInto(products, CUDNN_POINTWISE_MUL, dOutput, output);
    var sum =
        graph.reduce(
            CUDNN_REDUCE_TENSOR_ADD, products, graph.between(statistics, CUDNN_DATA_FLOAT));
    graph.eachInto(sums, CUDNN_POINTWISE_MUL, sum, graph.constant(1f));

    var scale = scale(graph, problem);
    var scores = scores(graph, problem, query, key, scale);
    var masked = mask(graph, problem, graph.each(CUDNN_POINTWISE_SUB, scores, stats));
    var weights = graph.each(CUDNN_POINTWISE_EXP, masked);
    toKeys(graph, problem, weights, dOutput, dValue);

    var dWeights =
        graph.multiply(dOutput, value, graph.between(ofScores(problem), CUDNN_DATA_FLOAT));
    var dScores =
        graph.each(
            CUDNN_POINTWISE_MUL,
            graph.each(
                CUDNN_POINTWISE_MUL, graph.each(CUDNN_POINTWISE_SUB, dWeights, sums), weights),
            scale);
    toKeys(graph, problem, dScores, query, dKey);

    var keys = graph.reshape(key, ofKey(problem), type);
    if (deterministic) {
      graph.multiply(dScores, keys, dQuery);
      return List.of(query, key, value, output, dOutput, stats, dQuery, dKey, dValue, sums);
    }
    graph.multiply(dScores, keys, dQueryWide);
    graph.eachInto(dQuery, CUDNN_POINTWISE_IDENTITY, dQueryWide);
    return List.of(
        query, key, value, output, dOutput, stats, dQuery, dKey, dValue, sums, dQueryWide);
  }

  /// Multiplies the transposed of some numbers per row and key by the rows, and sums the heads that
  /// share a head of key and value.
  private static void toKeys(
      OperationGraph graph, AttentionProblem problem, Tensor of, Tensor rows, Tensor result) {
    int type = problem.type().code();
    var transposed = graph.reshape(of, ofScores(problem).transposed(), type);
    if (problem.heads() == problem.kvHeads()) {
      graph.multiply(transposed, rows, result);
      return;
    }
    var perHead =
        graph.between(Layout.packed(problem.heads(), problem.keys(), problem.headSize()), type);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, graph.multiply(transposed, rows, perHead), result);
  }

  private static Tensor scale(OperationGraph graph, AttentionProblem problem) {
    return graph.constant(problem.scale());
  }

  private static Tensor scores(
      OperationGraph graph, AttentionProblem problem, Tensor query, Tensor key, Tensor scale) {
    var products = graph.between(ofScores(problem), CUDNN_DATA_FLOAT);
    return graph.each(CUDNN_POINTWISE_MUL, graph.multiply(query, key, products), scale);
  }

  /// Keeps the scores of key ≤ row + shift, and of key > row + shift - window.
  private static Tensor mask(OperationGraph graph, AttentionProblem problem, Tensor scores) {
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
