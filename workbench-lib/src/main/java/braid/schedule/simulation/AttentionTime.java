package braid.schedule.simulation;

import braid.internal.work.AttentionTile;
import braid.model.AttentionSpec;
import braid.model.DType;
import braid.model.Tokens;
import braid.schedule.Step.Attend;

/// The time of a block of attention, and of its gradients, on a machine: two multiplications of the
/// tiles in which anything is seen and the weights of the scores that are seen, or reading and
/// writing its tensors if that takes longer, and the partial result.
final class AttentionTime {
  /// Multiplications of a block.
  private static final int PRODUCTS = 2;

  /// Multiplications of the gradients of a block.
  private static final int GRADIENT_PRODUCTS = 5;

  private AttentionTime() {}

  static double flops(Attend attend) {
    return 4 * attend.pairs() * attend.spec().heads() * attend.spec().headSize();
  }

  static double nanos(Attend attend, Hardware machine) {
    var spec = attend.spec();
    var compute = machine.compute();
    double computed =
        multiplied(attend, machine) + attend.pairs() * spec.heads() / compute.weights() * 1e9;
    return Math.max(computed, moved(attend, machine))
        + (hasPartialResult(attend, machine) ? results(attend, machine) : 0);
  }

  /// Returns the time to move the tensors of a block through memory once.
  private static double moved(Attend attend, Hardware machine) {
    long bytes =
        attend.query().bytes()
            + attend.key().bytes()
            + attend.value().bytes()
            + attend.written().output().bytes();
    return bytes / machine.compute().reduceBytes() * 1e9;
  }

  /// Returns whether a block adds to a partial result, or writes one. A machine that multiplies a
  /// type of 16 bits writes the result of a single block with the products.
  private static boolean hasPartialResult(Attend attend, Hardware machine) {
    var type = attend.spec().dtype();
    return attend.continued()
        || attend.written().output().buffer().dtype() != type
        || type.isStoredAsFp32()
        || machine.compute().widened().containsKey(type);
  }

  private static double results(Attend attend, Hardware machine) {
    return (double) attend.query().rows()
        * attend.spec().heads()
        / machine.compute().results()
        * 1e9;
  }

  static double gradientFlops(Attend block) {
    return flops(block) * GRADIENT_PRODUCTS / PRODUCTS;
  }

  /// Returns the time of the gradients of a block: five multiplications instead of two, and besides
  /// the weights the gradients of the scores. Each tensor has a gradient of its size.
  static double gradientNanos(Attend block, Hardware machine) {
    double computed =
        multiplied(block, machine) * GRADIENT_PRODUCTS / PRODUCTS
            + 2 * block.pairs() * block.spec().heads() / machine.compute().weights() * 1e9;
    return Math.max(computed, 2 * moved(block, machine)) + results(block, machine);
  }

  private static double multiplied(Attend attend, Hardware machine) {
    var spec = attend.spec();
    var compute = machine.compute();
    double widened = machine.wideningNanos(spec.dtype(), elements(attend));
    var type = compute.widened().containsKey(spec.dtype()) ? DType.FP32 : spec.dtype();
    double keys = multipliedPairs(attend) / attend.query().rows();
    // As if they were the rows of one head.
    double rows = (double) attend.query().rows() * spec.heads();
    var rates = compute.attention().get(type);
    if (rates != null) {
      return widened + 2 * rates.nanos(rows, keys, spec.headSize());
    }
    return widened
        + machine.gemmNanos(type, rows, keys, spec.headSize())
        + machine.gemmNanos(type, rows, spec.headSize(), keys);
  }

  private static double elements(Attend attend) {
    return (double) attend.query().rows() * attend.query().columns()
        + 2.0 * attend.key().rows() * attend.key().columns();
  }

  /// Returns the pairs of a query and a key in tiles in which any query sees any key: for each tile
  /// of queries all keys from the first to the last that one of them sees.
  private static double multipliedPairs(Attend attend) {
    return Tokens.allPairs(attend.spec(), attend.queries(), attend.keys()).stream()
        .mapToDouble(pair -> multipliedPairs(pair.spec(), pair.rows(), pair.keys()))
        .sum();
  }

  private static double multipliedPairs(AttentionSpec spec, Tokens.Run queries, Tokens.Run keys) {
    double pairs = 0;
    for (long query = queries.first(); query < queries.end(); query += AttentionTile.ROWS) {
      long next = Math.min(queries.end(), query + AttentionTile.ROWS);
      long first = Math.max(keys.first(), spec.firstSeen(query));
      long last = Math.min(keys.end() - 1, spec.lastSeen(next - 1));
      pairs += (double) (next - query) * Math.max(0, last - first + 1);
    }
    return pairs;
  }
}
