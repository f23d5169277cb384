package braid.internal.pipeline;

import java.util.Locale;

/// What a plan has memory for.
public enum Part {
  /// This rank's part of the input.
  INPUT,
  /// This rank's part of the weight.
  WEIGHT,
  /// A number for each of this rank's columns.
  BIAS,
  /// This rank's part of what is communicated beside the multiplication.
  BESIDE_INPUT,
  /// This rank's part of the output.
  OUTPUT,
  /// What the output is the GELU of.
  PRE_ACTIVATION,
  /// The input of all ranks.
  GATHERED_INPUT,
  /// What came of the communication beside the multiplication.
  BESIDE_OUTPUT;

  /// Whether users write it and runs read it.
  public boolean given() {
    return switch (this) {
      case INPUT, WEIGHT, BIAS, BESIDE_INPUT -> true;
      case OUTPUT, PRE_ACTIVATION, GATHERED_INPUT, BESIDE_OUTPUT -> false;
    };
  }

  /// As users call it.
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }
}
