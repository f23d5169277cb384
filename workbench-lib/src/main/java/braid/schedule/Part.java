package braid.schedule;

import java.util.Locale;

/// Tensors of a problem: the names of its schedule's ports.
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
  /// The values that the output is the GELU of.
  PRE_ACTIVATION,
  /// The input of all ranks.
  GATHERED_INPUT,
  /// The result of the communication beside the multiplication.
  BESIDE_OUTPUT;

  /// Whether users write it and runs read it.
  public boolean given() {
    return switch (this) {
      case INPUT, WEIGHT, BIAS, BESIDE_INPUT -> true;
      case OUTPUT, PRE_ACTIVATION, GATHERED_INPUT, BESIDE_OUTPUT -> false;
    };
  }

  /// The name of its port and buffer.
  public String port() {
    return toString();
  }

  /// As users call it.
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }
}
