package braid.natives.kernels;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.load.Libraries;

/// Provides the compiler for tests: of a toolkit, or of the redist jar that `-Pnvrtc` adds to the
/// class path.
final class Nvrtc {
  private Nvrtc() {}

  static KernelCompiler orSkip() {
    var found = Libraries.find(Libraries.Library.NVRTC);
    assumeTrue(found.isPresent(), "no NVRTC was found, so no kernel is compiled; try -Pnvrtc");
    return KernelCompiler.open(found.orElseThrow().path());
  }
}
