package braid.internal.rank;

import braid.model.BraidException;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/// The code that computes attention on GPUs, as in `BRAID_ATTENTION`.
public enum AttentionEngine {
  /// cuDNN where it is present and computes the block, else our own kernels.
  AUTO,
  /// cuDNN; what it cannot compute is an error.
  CUDNN,
  /// Our own kernels.
  OWN;

  /// Returns the engine of a value of `BRAID_ATTENTION`.
  ///
  /// @throws BraidException if there is none
  public static AttentionEngine parse(String name) {
    return Arrays.stream(values())
        .filter(each -> each.toString().equals(name))
        .findFirst()
        .orElseThrow(
            () ->
                new BraidException(
                    "BRAID_ATTENTION must be one of %s but was %s"
                        .formatted(
                            Arrays.stream(values())
                                .map(AttentionEngine::toString)
                                .collect(Collectors.joining(", ")),
                            name)));
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
