package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.ucx.UcxWorker;

/// The library that tests of several hosts need.
final class Ucx {
  private Ucx() {}

  /// Skips a test by name where UCX is missing; fails it in CI, which installs it.
  static void need() {
    var missing = UcxWorker.missing();
    if (System.getenv("CI") != null) {
      assertThat(missing).isEmpty();
    }
    assumeTrue(missing.isEmpty(), () -> "UCX is missing: " + missing.orElse(""));
  }
}
