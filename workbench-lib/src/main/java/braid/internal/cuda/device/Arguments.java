package braid.internal.cuda.device;

import braid.internal.work.Matrix;
import braid.internal.work.Reduction;
import braid.model.DType;
import braid.natives.kernels.ElementType;
import braid.natives.kernels.ReduceArguments;
import java.lang.foreign.MemorySegment;

/// Converts the library's types to those of the kernels.
final class Arguments {
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

  static ReduceArguments of(Reduction reduction) {
    var out = reduction.out();
    var epilogue = reduction.epilogue();
    return ReduceArguments.of(
        reduction.parts().stream()
            .map(part -> new ReduceArguments.Part(part.bytes().address(), type(part.dtype())))
            .toList(),
        out.bytes().address(),
        type(out.dtype()),
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
