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

  /// The buffer of the largest size of any number of an FP8 output; it is no port.
  public static final String AMAX = "amax";

  /// Whether it is a line of numbers and no matrix.
  public boolean isLine() {
    return switch (this) {
      case BIAS, BESIDE_INPUT, BESIDE_OUTPUT -> true;
      case INPUT, WEIGHT, OUTPUT, PRE_ACTIVATION, GATHERED_INPUT -> false;
    };
  }

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
