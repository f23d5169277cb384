package braid.natives.load;

import braid.natives.load.Libraries.Library;
import java.util.Locale;
import java.util.Optional;

/// Features that need a version of the driver, of a GPU or of a library. The code that refuses a
/// feature asks here, and `doctor` prints this list.
@SuppressWarnings("ImmutableEnumChecker") // a component is a record of immutable values
public enum Feature {
  RANKS("ranks on GPUs, graphs", Component.DRIVER, "13.0"),
  RUNTIME("ranks on GPUs, graphs", Component.of(Library.CUDA_RUNTIME)),
  COPY_BATCHES("copies in batches", Component.DRIVER, "13.0"),
  GEMMS("GEMMs, fused epilogues", Component.of(Library.CUBLAS_LT)),
  /// The first version that was tried.
  ATTENTION("cuDNN's attention", Component.of(Library.CUDNN), "9.14"),
  /// Earlier versions need a padding mask for numbers of keys that are no multiple of 128.
  ATTENTION_BACKWARD("cuDNN's attention backward", Component.of(Library.CUDNN), "9.16"),
  /// The first version that was tried.
  PACKED_ATTENTION("cuDNN's packed attention", Component.of(Library.CUDNN), "9.19"),
  FP8("GEMMs in fp8", Component.GPU, "8.9"),
  KERNELS("sums, worker copies, signals", Component.GPU, "8.0"),
  COMPILED_KERNELS("sums, worker copies, signals", Component.of(Library.NVRTC)),
  BULK_COPIES("bulk copies by workers", Component.GPU, "9.0"),
  NCCL("collectives by NCCL", Component.of(Library.NCCL)),
  /// Windows and symmetric kernels came with 2.27, but Braid registers them with the communicator
  /// of the collectives by copy engines, which came with 2.28.
  NCCL_COPY_ENGINES("NCCL: windows, copy engines", Component.of(Library.NCCL), "2.28"),
  NVSHMEM("puts by NVSHMEM", Component.of(Library.NVSHMEM)),
  /// The first version that registers a workspace with a grid.
  FUSED_COLLECTIVES("GEMMs fused with collectives", Component.of(Library.CUBLAS_MP), "0.8"),
  /// The first version with the record layout that profiles read.
  PROFILES("GPU times in profiles", Component.of(Library.CUPTI), "13.0");

  /// Part of a machine that has a version.
  ///
  /// @param library empty for the driver and for GPUs
  /// @param remedy what to do about an old one
  public record Component(String title, Optional<Library> library, String remedy) {
    /// Its version is the newest CUDA that it supports.
    public static final Component DRIVER =
        new Component("a driver for CUDA", Optional.empty(), "install a newer driver");

    /// Its version is the compute capability.
    public static final Component GPU =
        new Component("compute capability", Optional.empty(), "use a newer GPU");

    static Component of(Library library) {
      return new Component(
          library.title(), Optional.of(library), "install a newer " + library.title());
    }
  }

  private final String title;
  private final Component component;
  private final String minimum;

  Feature(String title, Component component, String minimum) {
    this.title = title;
    this.component = component;
    this.minimum = minimum;
  }

  /// A feature that needs the major version in the library's file name.
  Feature(String title, Component component) {
    this(title, component, major(component.library.orElseThrow()));
  }

  private static String major(Library library) {
    var file = library.files().getFirst();
    return file.substring(file.lastIndexOf('.') + 1);
  }

  public String title() {
    return title;
  }

  public Component component() {
    return component;
  }

  /// Smallest version that has the feature.
  public String minimum() {
    return minimum;
  }

  /// Component and smallest version: `NCCL 2.28`.
  public String needs() {
    return component.title + " " + minimum;
  }

  /// Returns true if this version has the feature. A text that is not a version is not refused: the
  /// library itself refuses what it cannot do.
  public boolean isIn(String found) {
    var version = Version.of(found);
    return version.isEmpty() || !new Version(minimum).newerThan(version.get());
  }

  /// Returns why this version is refused, `needs NCCL 2.28, found 2.21.5`; empty if it is not.
  public Optional<String> refusal(String found) {
    return isIn(found)
        ? Optional.empty()
        : Optional.of("needs %s, found %s".formatted(needs(), found));
  }

  /// @throws UnsupportedOperationException if this version does not have the feature
  public void require(String found) {
    refusal(found)
        .ifPresent(
            reason -> {
              throw new UnsupportedOperationException(
                  "%s: %s; %s".formatted(title, reason, component.remedy));
            });
  }

  /// CUDA's version as text: 13000 is 13.0.
  public static String cuda(int version) {
    return String.format(Locale.ROOT, "%d.%d", version / 1000, version % 1000 / 10);
  }

  /// A compute capability as text: 90 is 9.0.
  public static String capability(int architecture) {
    return String.format(Locale.ROOT, "%d.%d", architecture / 10, architecture % 10);
  }

  /// cuBLASMp's version as text: 801 is 0.8.1.
  public static String thousands(int version) {
    return String.format(
        Locale.ROOT, "%d.%d.%d", version / 1000, version % 1000 / 100, version % 100);
  }

  /// NCCL's, CUPTI's and cuDNN's versions as text: 22809 is 2.28.9.
  public static String tenThousands(int version) {
    return String.format(
        Locale.ROOT, "%d.%d.%d", version / 10_000, version % 10_000 / 100, version % 100);
  }
}
