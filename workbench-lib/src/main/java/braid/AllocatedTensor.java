package braid;

import braid.model.DType;
import java.util.List;

/// A tensor that owns its memory, so that a pipeline can work on it: see [Pipeline.Builder#input].
public sealed interface AllocatedTensor permits SymmetricTensor, LocalTensor {
  /// The sizes of one rank's part.
  List<Long> shape();

  DType dtype();
}
