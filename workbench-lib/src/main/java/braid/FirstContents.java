package braid;

import braid.natives.kernels.Drawn;
import braid.schedule.Part;

/// First contents of a pipeline's tensors: drawn numbers in inputs, and zeros in results.
final class FirstContents {
  private static final long INPUT_SEED = 1;
  private static final long WEIGHT_SEED = 1_000_003;
  private static final long BIAS_SEED = 2_000_003;
  private static final long BESIDE_SEED = 3_000_017;
  private static final long QUERY_SEED = 4_000_037;
  private static final long KEY_SEED = 5_000_011;
  private static final long VALUE_SEED = 6_000_011;
  private static final long OUTPUT_GRADIENT_SEED = 7_000_003;

  private FirstContents() {}

  static void fill(Part part, TensorView tensor, int rank, Drawn numbers) {
    var _ =
        switch (part) {
          case INPUT -> tensor.draw(numbers, INPUT_SEED + rank);
          case WEIGHT -> tensor.draw(numbers, WEIGHT_SEED + rank);
          // The same on all ranks, since their columns are the same unless they gather.
          case BIAS -> tensor.draw(numbers, BIAS_SEED);
          case BESIDE_INPUT -> tensor.draw(numbers, BESIDE_SEED + rank);
          case QUERY, QKV -> tensor.draw(numbers, QUERY_SEED + rank);
          case KEY, KV -> tensor.draw(numbers, KEY_SEED + rank);
          case VALUE -> tensor.draw(numbers, VALUE_SEED + rank);
          case OUTPUT_GRADIENT -> tensor.draw(numbers, OUTPUT_GRADIENT_SEED + rank);
          default -> tensor.fill(0);
        };
  }
}
