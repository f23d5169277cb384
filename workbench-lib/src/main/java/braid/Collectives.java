package braid;

import java.util.List;

/// Placeholder until the collectives land in this file.
final class Collectives {
  static final List<String> NAMES =
      List.of(
          "all-gather",
          "reduce-scatter",
          "all-reduce",
          "all-to-all",
          "broadcast",
          "send",
          "receive",
          "barrier");

  private Collectives() {}
}
