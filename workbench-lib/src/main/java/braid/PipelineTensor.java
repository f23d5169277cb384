package braid;

import braid.model.DType;
import java.util.List;

/// A tensor that a pipeline can work on instead of memory of its own: see [Pipeline.Builder#input].
/// Of a [Tensor], which is a view, it works on this rank's memory.
public sealed interface PipelineTensor permits SymmetricTensor, LocalTensor, Tensor {
  /// The sizes of one rank's part.
  List<Long> shape();

  DType dtype();
}
