package braid.internal.resource;

import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/// Memory that some members of a group allocate from, and that is free.
///
/// @param name name for messages, such as `/dev/shm`
/// @param bytes bytes that those members together may still allocate
/// @param members numbers of those members in the group
/// @param symmetricUnit sizes of symmetric buffers are rounded up to a multiple of it; 0 if they
///   are allocated elsewhere
/// @param privateUnit the same for private buffers
public record FreeSpace(
    String name, long bytes, List<Integer> members, long symmetricUnit, long privateUnit) {
  /// Number of buffers that a refusal names.
  private static final int NAMED_BUFFERS = 4;

  private static final long BYTES_PER_MIB = 1L << 20;

  /// Returns why the buffers of these members do not fit; empty if they do.
  ///
  /// @param ranks the members' ranks in the world
  public Optional<String> refusal(List<BufferRequest> buffers, List<Integer> ranks) {
    long needed = members.stream().mapToLong(member -> bytes(buffers, member)).sum();
    if (needed <= bytes) {
      return Optional.empty();
    }
    int largest =
        members.stream()
            .max(
                Comparator.comparingLong((Integer member) -> bytes(buffers, member))
                    .thenComparing(Comparator.reverseOrder()))
            .orElseThrow();
    var users = members.stream().map(member -> ranks.get(member).toString()).toList();
    return Optional.of(
        "the buffers need %d MiB of %s for %s %s but %d MiB are free there: rank %d needs %s"
            .formatted(
                Math.ceilDiv(needed, BYTES_PER_MIB),
                name,
                users.size() == 1 ? "rank" : "ranks",
                String.join(", ", users),
                Math.max(bytes, 0) / BYTES_PER_MIB,
                ranks.get(largest),
                listed(buffers, largest)));
  }

  private long bytes(List<BufferRequest> buffers, int member) {
    return buffers.stream().mapToLong(buffer -> bytes(buffer, member)).sum();
  }

  private long bytes(BufferRequest buffer, int member) {
    long unit = buffer.symmetric() ? symmetricUnit : privateUnit;
    return unit == 0 ? 0 : Math.ceilDiv(buffer.bytes().get(member), unit) * unit;
  }

  /// Lists the largest buffers of a member with their sizes, and the sum of the others.
  private String listed(List<BufferRequest> buffers, int member) {
    var bySize =
        buffers.stream()
            .filter(buffer -> bytes(buffer, member) > 0)
            .sorted(
                Comparator.comparingLong((BufferRequest buffer) -> bytes(buffer, member))
                    .reversed())
            .toList();
    var named = bySize.subList(0, Math.min(bySize.size(), NAMED_BUFFERS));
    var others = bySize.subList(named.size(), bySize.size());
    return named.stream()
            .map(buffer -> "`%s` %s".formatted(buffer.name(), mebibytes(bytes(buffer, member))))
            .collect(Collectors.joining(", "))
        + (others.isEmpty()
            ? ""
            : ", %d others %s".formatted(others.size(), mebibytes(bytes(others, member))));
  }

  private static String mebibytes(long bytes) {
    return "%d MiB".formatted(Math.ceilDiv(bytes, BYTES_PER_MIB));
  }
}
