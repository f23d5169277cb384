package braid.launcher.machine;

import braid.model.BraidException;
import java.util.List;
import java.util.stream.IntStream;

/// Backend of the ranks and the reason for it; an automatic choice states its reason.
///
/// @param name `host` or `cuda`
/// @param devices device of each rank, in order; empty on the host
public record BackendChoice(String name, String why, List<String> devices) {
  public static final String AUTO = "auto";
  public static final String HOST = "host";
  public static final String CUDA = "cuda";

  private static final List<String> BACKENDS = List.of(AUTO, HOST, CUDA);

  public BackendChoice {
    devices = List.copyOf(devices);
  }

  public BackendChoice(String name, String why) {
    this(name, why, List.of());
  }

  /// @param from option or variable with the request, for messages
  /// @throws BraidException if there is no such backend
  public static void check(String requested, String from) {
    if (!BACKENDS.contains(requested)) {
      throw new BraidException(
          "%s must be one of %s but was %s; try host"
              .formatted(from, String.join(", ", BACKENDS), requested));
    }
  }

  /// @param requested `auto`, `host` or `cuda`
  /// @param from option or variable with the request, for messages
  /// @throws BraidException if the requested backend is not available
  public static BackendChoice of(String requested, String from, int ranks, Gpus gpus) {
    check(requested, from);
    return switch (requested) {
      case CUDA -> {
        if (gpus.count() == 0) {
          throw new BraidException(
              "%s cuda needs a GPU but none is available (%s); try host"
                  .formatted(from, gpus.missing()));
        }
        if (ranks > gpus.count()) {
          throw new BraidException(
              "%s cuda runs one rank per GPU: -n must be 1..%d but was %d; try -n %d, or --backend host"
                  .formatted(from, gpus.count(), ranks, gpus.count()));
        }
        yield onGpus(ranks, gpus);
      }
      case HOST -> new BackendChoice(HOST, "set by %s".formatted(from));
      default ->
          gpus.count() == 0
              ? new BackendChoice(HOST, "no GPU: " + gpus.missing())
              : ranks > gpus.count()
                  ? new BackendChoice(HOST, "%d ranks but only %s".formatted(ranks, gpus.words()))
                  : onGpus(ranks, gpus);
    };
  }

  private static BackendChoice onGpus(int ranks, Gpus gpus) {
    var why =
        ranks == gpus.count()
            ? "one rank on each of " + gpus.words()
            : "%d of %s, one rank each".formatted(ranks, gpus.words());
    var devices =
        IntStream.range(0, ranks)
            .mapToObj(i -> "GPU %d: %s".formatted(i, gpus.all().get(i).name()));
    return new BackendChoice(CUDA, why, devices.toList());
  }

  /// Returns the device of a rank: its GPU's number, as CUDA counts, and name, or "host".
  public String device(int rank) {
    return rank < devices.size() ? devices.get(rank) : isCuda() ? "GPU " + rank : HOST;
  }

  public boolean isCuda() {
    return name.equals(CUDA);
  }

  /// Returns name and reason: "host (no GPU: no /dev/nvidia0)".
  @Override
  public String toString() {
    return "%s (%s)".formatted(name, why);
  }
}
