package braid;

import braid.CalibrationCases.Case;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.schedule.simulation.GemmRates;
import java.util.ArrayList;
import java.util.List;

/// Multiplications and attention whose rates a calibration measures, by shape and type.
///
/// @param host true on the host backend
record CalibrationShapes(int ranks, boolean host) {
  /// Sizes that rates are measured for.
  ///
  /// @param rows numbers of rows
  /// @param others numbers of columns, and depths
  record Sizes(List<Integer> rows, List<Integer> others) {}

  private static final Sizes HOST_GEMM =
      new Sizes(List.of(16, 64, 256, 1024), List.of(80, 272, 528, 1040, 1552));

  /// The larger ones are those of models. Tiles of powers of two fill the multiprocessors better,
  /// and few rows of a small weight read it slower than those of a large one.
  static final Sizes GPU_GEMM =
      new Sizes(
          List.of(32, 128, 256, 512, 1024, 2048, 4096, 8192),
          List.of(512, 1024, 2048, 4096, 7168, 14_336));

  /// Sizes of the types on GPUs that are used less.
  private static final Sizes FEWER = new Sizes(List.of(128, 512, 2048, 8192), List.of(1024, 8192));

  /// Queries of all heads, and keys.
  private static final Sizes HOST_ATTENTION = new Sizes(List.of(1024, 4096), List.of(256, 1024));

  private static final Sizes GPU_ATTENTION =
      new Sizes(List.of(8192, 32_768, 262_144), List.of(512, 2048, 8192));
  static final List<Integer> HEAD_SIZES = List.of(64, 128);

  /// Rows of parts that are copied and added. On GPUs small ones take the time of a launch, and a
  /// bandwidth is that of large ones.
  List<Integer> partRows() {
    return host ? List.of(64, 1024, 4096) : List.of(4096);
  }

  int partColumns() {
    return host ? 1024 : 8192;
  }

  /// Returns the sizes of a type.
  Sizes sizes(DType type) {
    return host ? HOST_GEMM : type == DType.BF16 ? GPU_GEMM : FEWER;
  }

  /// Returns a multiplication of these sizes on each rank, of gathered rows.
  GemmSpec gathered(int m, int n, int k, DType type) {
    return GemmSpec.allGatherGemm(m, n * ranks, k).dtype(type);
  }

  /// Returns multiplications in the order of [GemmRates].
  List<Case> gemms(DType type) {
    var made = new ArrayList<Case>();
    for (int n : sizes(type).others()) {
      for (int k : sizes(type).others()) {
        for (int m : sizes(type).rows()) {
          made.add(new Case(gathered(m, n, k, type), Overlap.unfused()));
        }
      }
    }
    return made;
  }

  Sizes attentionSizes() {
    return host ? HOST_ATTENTION : GPU_ATTENTION;
  }

  /// Returns attentions in the order of [GemmRates]. Each rank attends with its share of the
  /// sequence.
  List<Case> attentions(DType type) {
    var made = new ArrayList<Case>();
    for (int keys : attentionSizes().others()) {
      for (int headSize : HEAD_SIZES) {
        for (int queries : attentionSizes().rows()) {
          int rows = Math.ceilDiv(keys, ranks);
          var spec =
              AttentionSpec.of(rows * ranks, Math.ceilDiv(queries, rows), headSize).dtype(type);
          made.add(new Case(spec, ContextParallel.unfused()));
        }
      }
    }
    return made;
  }
}
