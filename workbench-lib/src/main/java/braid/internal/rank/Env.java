package braid.internal.rank;

import braid.model.BraidException;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Place;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/// What a rank is told by its environment. No other class of the library reads it.
///
/// @param world this rank and the number of ranks: `RANK`, `WORLD_SIZE`
/// @param local the same among the ranks of this machine: `LOCAL_RANK`, `LOCAL_WORLD_SIZE`
/// @param store where the ranks meet, absent for a rank alone: `MASTER_ADDR`, `MASTER_PORT`,
///   `BRAID_TOKEN`
/// @param backend `BRAID_BACKEND`: `auto`, `host` or `cuda`
/// @param link the link that the host backend plays: `BRAID_LINK`
/// @param memory the kind of symmetric memory where the code names none: `BRAID_SYMMETRIC_MEMORY`
/// @param timeout how long a rank waits for another: `BRAID_TIMEOUT_SECONDS`
/// @param nvshmemHeapBytes how much symmetric memory NVSHMEM gets on each rank, all of it at once:
///   `BRAID_NVSHMEM_HEAP_MIB`
/// @param bulkCopies whether workers on a GPU copy in bulk where they can: `BRAID_WORKER_COPIES`,
///   `bulk` or `loads`
/// @param cache the folder in which compiled kernels and chosen algorithms are kept: `BRAID_CACHE`
public record Env(
    Place world,
    Place local,
    Optional<StoreAddress> store,
    String backend,
    Link link,
    MemoryKind memory,
    Duration timeout,
    long nvshmemHeapBytes,
    boolean bulkCopies,
    Path cache) {
  public static final Duration DEFAULT_TIMEOUT = Duration.ofMinutes(5);

  /// Where nobody says: what NVSHMEM itself takes.
  public static final long DEFAULT_NVSHMEM_HEAP_BYTES = 1L << 30;

  /// Where they are kept when nobody says: the user's, so that all their sessions share them.
  public static final Path DEFAULT_CACHE =
      Path.of(System.getProperty("user.home", "/"), ".cache", "braid");

  /// The cache's folder of compiled kernels.
  public static final String KERNELS = "kernels";

  /// The cache's folder of the algorithms that were chosen for multiplications.
  public static final String ALGORITHMS = "algorithms";

  /// Where the ranks' store listens, and what lets one in.
  public record StoreAddress(String host, int port, String token) {}

  public Path kernels() {
    return cache.resolve(KERNELS);
  }

  public Path algorithms() {
    return cache.resolve(ALGORITHMS);
  }

  /// This process's.
  public static Env ofProcess() {
    return read(System.getenv());
  }

  /// Nothing set is a world of one rank. What is set must be right, and complete.
  public static Env read(Map<String, String> variables) {
    var reader = new Reader(variables);
    var world = reader.place("RANK", "WORLD_SIZE", new Place(0, 1));
    var local = reader.place("LOCAL_RANK", "LOCAL_WORLD_SIZE", world);
    if (local.size() > world.size()) {
      throw new BraidException(
          "LOCAL_WORLD_SIZE must be at most WORLD_SIZE = %d but was %d"
              .formatted(world.size(), local.size()));
    }
    return new Env(
        world,
        local,
        reader.store(world),
        reader.backend(),
        reader.get("BRAID_LINK").map(Link::parse).orElse(Link.DEFAULT),
        reader.get("BRAID_SYMMETRIC_MEMORY").map(MemoryKind::parse).orElse(MemoryKind.AUTO),
        reader
            .number("BRAID_TIMEOUT_SECONDS", 1, Integer.MAX_VALUE)
            .map(Duration::ofSeconds)
            .orElse(DEFAULT_TIMEOUT),
        reader
            .number("BRAID_NVSHMEM_HEAP_MIB", 16, Integer.MAX_VALUE)
            .map(mebibytes -> (long) mebibytes << 20)
            .orElse(DEFAULT_NVSHMEM_HEAP_BYTES),
        reader.bulkCopies(),
        reader.path("BRAID_CACHE").orElse(DEFAULT_CACHE));
  }

  private record Reader(Map<String, String> variables) {
    Optional<String> get(String name) {
      return Optional.ofNullable(variables.get(name)).map(String::strip).filter(s -> !s.isEmpty());
    }

    Optional<Integer> number(String name, int min, int max) {
      return get(name).map(text -> parse(name, text, min, max));
    }

    private static int parse(String name, String text, int min, int max) {
      try {
        int value = Integer.parseInt(text);
        if (value >= min && value <= max) {
          return value;
        }
      } catch (NumberFormatException e) {
        // Not a number is as wrong as a number out of range, and the remedy is the same.
      }
      var range = max == Integer.MAX_VALUE ? min + " or more" : min + ".." + max;
      throw new BraidException("%s must be %s but was %s".formatted(name, range, text));
    }

    Place place(String rankName, String sizeName, Place absent) {
      var size = number(sizeName, 1, Integer.MAX_VALUE);
      if (size.isEmpty()) {
        if (get(rankName).isPresent()) {
          throw new BraidException(
              "%s is set but %s is not; set both or neither".formatted(rankName, sizeName));
        }
        return absent;
      }
      return new Place(
          number(rankName, 0, size.get() - 1)
              .orElseThrow(
                  () ->
                      new BraidException(
                          "%s is set but %s is not; set both or neither"
                              .formatted(sizeName, rankName))),
          size.get());
    }

    Optional<StoreAddress> store(Place world) {
      var port = number("MASTER_PORT", 1, 65535);
      if (port.isEmpty()) {
        if (world.size() > 1) {
          throw new BraidException(
              "WORLD_SIZE is %d but MASTER_PORT is not set; it is the port of the ranks' store"
                  .formatted(world.size()));
        }
        return Optional.empty();
      }
      var token =
          get("BRAID_TOKEN")
              .orElseThrow(
                  () ->
                      new BraidException(
                          "MASTER_PORT is set but BRAID_TOKEN is not; it is the store's token"));
      return Optional.of(
          new StoreAddress(get("MASTER_ADDR").orElse("127.0.0.1"), port.get(), token));
    }

    /// A relative one is meant from where the ranks were started.
    Optional<Path> path(String name) {
      return get(name).map(text -> Path.of(text).toAbsolutePath());
    }

    boolean bulkCopies() {
      var how = get("BRAID_WORKER_COPIES").orElse("bulk");
      return switch (how) {
        case "bulk" -> true;
        case "loads" -> false;
        default ->
            throw new BraidException("BRAID_WORKER_COPIES must be bulk or loads but was " + how);
      };
    }

    String backend() {
      var name = get("BRAID_BACKEND").orElse("auto");
      return switch (name) {
        case "auto", "host", "cuda" -> name;
        default ->
            throw new BraidException(
                "BRAID_BACKEND must be one of auto, host, cuda but was " + name);
      };
    }
  }
}
