package braid;

import braid.model.DType;
import java.util.List;

/// A tensor on this rank: one that all ranks reach ([SymmetricTensor]), one of this rank alone
/// ([LocalTensor]), or a view of either ([TensorView]). Pipelines work on any of them
/// ([Pipeline.Builder#input]); of a view, on this rank's memory.
public sealed interface Tensor permits SymmetricTensor, LocalTensor, TensorView {
  /// Returns the sizes of one rank's part.
  List<Long> shape();

  DType dtype();
}
