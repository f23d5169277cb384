package braid.launcher.machine;

import braid.model.BackendKind;
import braid.model.BraidException;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/// Backend of the ranks and the reason for it; an automatic choice states its reason.
///
/// @param devices device of each rank, in order; empty on the host, and on several hosts, whose
///   GPUs this one does not know
/// @param shared true if ranks of other hosts may share GPUs there
public record BackendChoice(BackendKind kind, String why, List<String> devices, boolean shared) {
  public BackendChoice {
    devices = List.copyOf(devices);
  }

  public BackendChoice(BackendKind kind, String why, List<String> devices) {
    this(kind, why, devices, false);
  }

  public BackendChoice(BackendKind kind, String why) {
    this(kind, why, List.of());
  }

  /// Returns the choice of GPUs that the ranks of each host share.
  public static BackendChoice sharedGpus(String from) {
    return new BackendChoice(
        BackendKind.CUDA, "the ranks of each host share its GPUs: " + from, List.of(), true);
  }

  /// @param from option or variable with the request, for messages
  /// @param sharing option or variable by which ranks may share GPUs; empty if each needs its own
  /// @throws BraidException if the requested backend is not available
  public static BackendChoice of(
      BackendKind requested, String from, int ranks, Gpus gpus, Optional<String> sharing) {
    var refused = sharing.flatMap(source -> sharingRefusal(requested, from, source, gpus));
    if (refused.isPresent()) {
      throw new BraidException(refused.get());
    }
    boolean enough = ranks <= gpus.count() || sharing.isPresent();
    return switch (requested) {
      case CUDA -> {
        if (gpus.count() == 0) {
          throw new BraidException(
              "%s cuda needs a GPU but none is available (%s); try host"
                  .formatted(from, gpus.missing()));
        }
        if (!enough) {
          throw new BraidException(
              "%s cuda runs one rank per GPU: -n must be 1..%d but was %d; try -n %d, --share-gpus, or --backend host"
                  .formatted(from, gpus.count(), ranks, gpus.count()));
        }
        yield onGpus(ranks, gpus);
      }
      case HOST -> new BackendChoice(BackendKind.HOST, "set by %s".formatted(from));
      case AUTO ->
          gpus.count() == 0
              ? new BackendChoice(BackendKind.HOST, "no GPU: " + gpus.missing())
              : enough
                  ? onGpus(ranks, gpus)
                  : new BackendChoice(
                      BackendKind.HOST,
                      "%d ranks but only %s; --share-gpus runs them there"
                          .formatted(ranks, gpus.words()));
    };
  }

  private static Optional<String> sharingRefusal(
      BackendKind requested, String from, String sharing, Gpus gpus) {
    if (requested == BackendKind.HOST) {
      return Optional.of(
          "%s needs GPUs but %s is host; leave one of them out".formatted(sharing, from));
    }
    return gpus.count() > 0
        ? Optional.empty()
        : Optional.of(
            "%s needs a GPU but none is available (%s); leave it out, or try --backend host"
                .formatted(sharing, gpus.missing()));
  }

  /// Deals the ranks over the GPUs round robin.
  private static BackendChoice onGpus(int ranks, Gpus gpus) {
    int count = gpus.count();
    var why =
        ranks > count
            ? "%d ranks share %s".formatted(ranks, gpus.words())
            : ranks == count
                ? "one rank on each of " + gpus.words()
                : "%d of %s, one rank each".formatted(ranks, gpus.words());
    var devices =
        IntStream.range(0, ranks)
            .map(rank -> rank % count)
            .mapToObj(i -> "GPU %d: %s".formatted(i, gpus.all().get(i).name()));
    return new BackendChoice(BackendKind.CUDA, why, devices.toList());
  }

  /// Returns whether a GPU has several ranks. Times are no evidence then.
  public boolean sharesGpus() {
    return shared || new HashSet<>(devices).size() < devices.size();
  }

  /// Returns the device of a rank: its GPU's number, as CUDA counts, and name, or "host".
  public String device(int rank) {
    return rank < devices.size() ? devices.get(rank) : isCuda() ? "GPU " + rank : kind.toString();
  }

  public boolean isCuda() {
    return kind == BackendKind.CUDA;
  }

  /// Returns kind and reason: "host (no GPU: no /dev/nvidia0)".
  @Override
  public String toString() {
    return "%s (%s)".formatted(kind, why);
  }
}
