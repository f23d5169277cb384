package braid.evidence;

import braid.model.BackendKind;
import braid.model.DType;
import braid.model.Link;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;

/// Highest rates of a device: of GPUs the published ones, with dense matrices; of a host a bound
/// that no processor exceeds. Nothing is measured for it.
///
/// @param words owner of the rates, before them in messages
/// @param fp32 operations per second in fp32
/// @param tf32 operations per second in tf32
/// @param half operations per second in bf16 and fp16
/// @param fp8 operations per second in fp8
/// @param link bytes per second that a device receives from the others
record Peak(String words, double fp32, double tf32, double half, double fp8, double link) {
  /// Share by which a device may exceed its published rates: those hold at a clock below the
  /// highest.
  static final double SLACK = 0.10;

  /// Operations of one core: 6 GHz, 2 multiply-adds per cycle of 16 numbers in fp32.
  private static final double OPERATIONS_PER_CORE = 6e9 * 2 * 2 * 16;

  /// Cores of a host that the measurement does not name.
  private static final int MOST_CORES = 1024;

  private static final Pattern CORES = Pattern.compile("(\\d+) cores$");

  /// The more special name first. Blackwell's fp32 is the emulation by bf16 in nine products.
  /// TFLOP/s in fp32, tf32, bf16 and fp8; GB/s of NVLink in one direction, or of PCIe without it.
  private static final List<Gpu> GPUS =
      List.of(
          new Gpu("V100", 15.7, 15.7, 125, 125, 150),
          new Gpu("A100", 19.5, 156, 312, 312, 300),
          new Gpu("A800", 19.5, 156, 312, 312, 200),
          new Gpu("L40S", 91.6, 183, 362, 733, 64),
          new Gpu("L4", 30.3, 60, 121, 242, 64),
          new Gpu("H20", 44, 74, 148, 296, 450),
          new Gpu("H100 PCIe", 51, 378, 756, 1513, 300),
          new Gpu("H100 NVL", 60, 418, 835, 1671, 300),
          new Gpu("H100", 67, 495, 989, 1979, 450),
          new Gpu("H800", 67, 495, 989, 1979, 200),
          new Gpu("GH200", 67, 495, 989, 1979, 450),
          new Gpu("H200 NVL", 60, 418, 835, 1671, 450),
          new Gpu("H200", 67, 495, 989, 1979, 450),
          new Gpu("GB200", 278, 1250, 2500, 5000, 900),
          new Gpu("B200", 250, 1125, 2250, 4500, 900),
          new Gpu("GB300", 278, 1250, 2500, 5000, 900),
          new Gpu("B300", 250, 1125, 2250, 4500, 900));

  /// Stands for an unknown GPU.
  private static final Gpu FASTEST = new Gpu("fastest known GPU", 278, 1250, 2500, 5000, 900);

  private record Gpu(String name, double fp32, double tf32, double half, double fp8, double link) {
    boolean isNamed(String device) {
      return Pattern.compile("\\b" + Pattern.quote(name) + "\\b").matcher(device).find();
    }

    Peak peak() {
      return new Peak(
          "the %s's".formatted(name),
          1e12 * fp32,
          1e12 * tf32,
          1e12 * half,
          1e12 * fp8,
          1e9 * link);
    }
  }

  /// Returns the peak of a rank's device; empty for other backends, such as a simulation.
  ///
  /// @param backend kind of the backend, as tables show it
  /// @param device name of the device, as tables show it; empty if unknown
  /// @param link link between ranks, as tables show it
  static Optional<Peak> of(String backend, String device, String link, int ranks) {
    if (backend.equals(BackendKind.CUDA.toString())) {
      return Optional.of(
          GPUS.stream().filter(each -> each.isNamed(device)).findFirst().orElse(FASTEST).peak());
    }
    if (!backend.equals(BackendKind.HOST.toString())) {
      return Optional.empty();
    }
    var cores = CORES.matcher(device);
    int count = cores.find() ? Integer.parseInt(cores.group(1)) : MOST_CORES;
    double rate = OPERATIONS_PER_CORE * count / ranks;
    return Optional.of(
        new Peak(
            "what %d cores can do,".formatted(count),
            rate,
            rate,
            rate,
            rate,
            Link.parse(link).bytesPerSecond()));
  }

  /// Returns the operations per second with operands of a type.
  double rate(DType dtype) {
    return switch (dtype) {
      case FP32 -> fp32;
      case TF32 -> tf32;
      case BF16, FP16 -> half;
      case FP8_E4M3, FP8_E5M2 -> fp8;
    };
  }
}
