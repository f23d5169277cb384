package braid.launcher.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.machine.Gpus;
import braid.natives.load.FoundLibrary;
import braid.natives.nvml.GpuFacts;
import braid.natives.nvml.PeerPath;
import braid.natives.profiling.NvtxRange;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Formatting of the findings about GPUs.
class GpuChecksTest {
  private static final Gpus TWO = new Gpus(List.of(gpu(0), gpu(1)), "", "580.95.05, CUDA 13.0");

  private static GpuFacts gpu(int index) {
    return new GpuFacts(index, "NVIDIA H200", "GPU-" + index, 141L << 30, 140L << 30, 9, 0, 18);
  }

  @Test
  void linksOfOneKindArePrintedOnce() {
    var paths = new LinkedHashMap<PeerPath, List<String>>();
    paths.put(PeerPath.NVLINK, List.of("0-1", "0-2", "1-2"));
    assertThat(GpuChecks.words(TWO, paths))
        .isEqualTo("NVLink between all pairs, 18 links up on each GPU");
    paths.put(PeerPath.PCIE, List.of("0-3"));
    assertThat(GpuChecks.words(TWO, paths))
        .isEqualTo("NVLink between 0-1, 0-2, 1-2; PCIe between 0-3, 18 links up on each GPU");
  }

  @Test
  void withoutGpusEachLineIsMissingWithAReason() {
    var checks = GpuChecks.all(Gpus.none("no /dev/nvidia0"));
    assertThat(checks)
        .filteredOn(check -> check.id().equals("gpus"))
        .extracting(Check::value)
        .containsExactly("none: no /dev/nvidia0, so no CUDA, and no symmetric memory but native");
    assertThat(checks)
        .filteredOn(check -> check.id().startsWith("memory_"))
        .extracting(Check::value)
        .containsExactly(
            "host: shared memory, mapped by every rank",
            "needs a GPU",
            "needs a GPU",
            "needs a GPU");
    assertThat(checks).noneMatch(check -> check.state() == Check.State.MISSING);
  }

  @Test
  void rangesArePushedOrTheReasonIsPrinted() {
    assertThat(LibraryChecks.all(Gpus.none("no /dev/nvidia0")))
        .filteredOn(check -> check.id().equals("nvtx"))
        .singleElement()
        .satisfies(
            check -> {
              assertThat(check.value())
                  .startsWith(
                      NvtxRange.missing().isEmpty() ? "pushed by NVTX " : "not pushed: NVTX (");
              assertThat(check.remedy())
                  .matches(reason -> reason.isEmpty() == NvtxRange.missing().isEmpty());
            });
  }

  @Test
  void aLibraryHasTheReasonOfItsChoice() {
    var nccl =
        new FoundLibrary(
            "NCCL",
            Path.of("/venv/libnccl.so.2"),
            "2.28.9",
            "the newest of 2, in Python's packages",
            List.of("2.28.3 /usr/lib/libnccl.so.2"));
    assertThat(LibraryChecks.words(nccl))
        .isEqualTo(
            "2.28.9, /venv/libnccl.so.2: the newest of 2, in Python's packages; passed over:"
                + " 2.28.3 /usr/lib/libnccl.so.2");
  }
}
