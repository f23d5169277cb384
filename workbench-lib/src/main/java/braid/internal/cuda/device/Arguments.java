package braid.internal.cuda.device;

import braid.internal.work.AttentionBlock;
import braid.internal.work.AttentionGradientBlock;
import braid.internal.work.AttentionMerge;
import braid.internal.work.Matrix;
import braid.internal.work.Reduction;
import braid.model.DType;
import braid.natives.kernels.AttentionArguments;
import braid.natives.kernels.AttentionGradientArguments;
import braid.natives.kernels.AttentionMergeArguments;
import braid.natives.kernels.ElementType;
import braid.natives.kernels.ReduceArguments;
import java.lang.foreign.MemorySegment;

/// Converts the library's types to those of the kernels.
public final class Arguments {
  private Arguments() {}

  static ElementType type(DType dtype) {
    return switch (dtype) {
      case FP32 -> ElementType.FP32;
      case TF32 -> ElementType.TF32;
      case BF16 -> ElementType.BF16;
      case FP16 -> ElementType.FP16;
      case FP8_E4M3 -> ElementType.E4M3;
      case FP8_E5M2 -> ElementType.E5M2;
    };
  }

  /// Addresses of tables of the pairs of a packed block; all 0 if causality and window say them.
  ///
  /// @param seen of the keys that each row sees
  /// @param seeing of the rows that see each key
  /// @param tokens of a byte for each key, 0 if it is padding
  /// @param queryTokens of a byte for each row, 0 if it sees no key
  record Tables(long seen, long seeing, long tokens, long queryTokens) {
    static final Tables NONE = new Tables(0, 0, 0, 0);
  }

  static AttentionArguments of(AttentionBlock block, Tables tables) {
    long earlier = block.continued() ? block.result().output().segment().address() : 0;
    return of(block, tables, earlier);
  }

  private static AttentionArguments of(AttentionBlock block, Tables tables, long earlier) {
    var spec = block.spec();
    return AttentionArguments.of(
        rows(block.query()),
        rows(block.key()),
        rows(block.value()),
        rows(block.output()),
        rows(block.result().lse()),
        new AttentionArguments.Heads(spec.heads(), spec.group(), spec.headSize()),
        new AttentionArguments.Mask(
            block.shift(), 0, spec.isMasked(), spec.span(), tables.seen(), tables.tokens()),
        spec.scale(),
        earlier);
  }

  /// @param statistics address of scratch memory
  static AttentionGradientArguments of(
      AttentionGradientBlock gradient,
      boolean addsQuery,
      boolean addsKeys,
      Tables tables,
      long statistics) {
    return AttentionGradientArguments.of(
        of(gradient.block(), tables, 0),
        new AttentionGradientArguments.Gradients(
            rows(gradient.outputGradient()),
            rows(gradient.queryGradient()),
            rows(gradient.keyGradient()),
            rows(gradient.valueGradient()),
            addsQuery,
            addsKeys),
        new AttentionGradientArguments.Memory(statistics, tables.seeing(), tables.queryTokens()));
  }

  private static AttentionArguments.Rows rows(Matrix matrix) {
    return new AttentionArguments.Rows(
        matrix.segment().address(), type(matrix.dtype()), matrix.rows(), matrix.stride());
  }

  public static AttentionMergeArguments of(AttentionMerge merge) {
    var result = merge.result();
    int heads = result.lse().columns();
    return AttentionMergeArguments.of(
        merge.parts().stream().map(Arguments::part).toList(),
        part(result),
        type(result.output().dtype()),
        result.output().rows(),
        heads,
        heads == 0 ? 0 : result.output().columns() / heads);
  }

  private static AttentionMergeArguments.Part part(AttentionBlock.Part part) {
    return new AttentionMergeArguments.Part(
        part.output().bytes().address(), part.lse().bytes().address());
  }

  private static ReduceArguments.Part summed(Matrix matrix) {
    return new ReduceArguments.Part(
        matrix.segment().address(), type(matrix.dtype()), matrix.stride());
  }

  public static ReduceArguments of(Reduction reduction) {
    var out = reduction.out();
    var epilogue = reduction.epilogue();
    return ReduceArguments.of(
        reduction.parts().stream().map(Arguments::summed).toList(),
        summed(out),
        out.rows(),
        out.columns(),
        new ReduceArguments.Finish(
            epilogue.scale(),
            epilogue.accumulate(),
            epilogue.bias().map(MemorySegment::address).orElse(0L),
            epilogue.preActivation().map(Matrix::segment).map(MemorySegment::address).orElse(0L),
            epilogue.amax().map(MemorySegment::address).orElse(0L),
            epilogue.outScale()));
  }
}
