package braid;

import braid.model.DType;
import java.util.List;

/// A tensor of the caller that a pipeline can work on, instead of memory that the pipeline
/// allocates: see [Pipeline.Builder#input]. Of a [Tensor], which is a view, it uses this rank's
/// memory.
public sealed interface PipelineTensor permits SymmetricTensor, LocalTensor, Tensor {
  /// Returns the sizes of one rank's part.
  List<Long> shape();

  DType dtype();
}
