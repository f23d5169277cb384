package braid.internal.rank;

import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Place;
import braid.natives.load.Libraries;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/// A rank's environment variables. No other class of the library reads them. `BRAID_WITHOUT` and
/// `BRAID_LIBRARIES` are only checked here: the loader of native libraries reads them.
///
/// @param world this rank and the number of ranks: `RANK`, `WORLD_SIZE`
/// @param local the same among the ranks of this machine: `LOCAL_RANK`, `LOCAL_WORLD_SIZE`
/// @param host name of this rank's host, if the ranks' hosts are named: `BRAID_HOST`
/// @param store address of the ranks' store, absent for a rank alone: `MASTER_ADDR`, `MASTER_PORT`,
///   `BRAID_TOKEN`
/// @param backend `BRAID_BACKEND`: `auto`, `host` or `cuda`
/// @param shareGpus true if ranks of one machine may share its GPUs: `BRAID_SHARE_GPUS`
/// @param link link that the host backend simulates: `BRAID_LINK`
/// @param memory default kind of symmetric memory: `BRAID_SYMMETRIC_MEMORY`
/// @param timeout time limit of a wait for another rank: `BRAID_TIMEOUT_SECONDS`
/// @param nvshmemHeapBytes size of NVSHMEM's heap per rank, allocated at once:
///   `BRAID_NVSHMEM_HEAP_MIB`
/// @param bulkCopies true if workers on a GPU use bulk copies where possible:
///   `BRAID_WORKER_COPIES`, `bulk` or `loads`
/// @param attention code that computes attention on a GPU: `BRAID_ATTENTION`
/// @param untilDecided time in which all studies together may measure until they are decided,
///   beyond their own budgets: `BRAID_UNTIL_DECIDED_SECONDS`
/// @param cache folder of compiled kernels and chosen algorithms: `BRAID_CACHE`
/// @param python interpreter of scripts of other stacks: `BRAID_PYTHON`
public record Env(
    Place world,
    Place local,
    Optional<String> host,
    Optional<StoreAddress> store,
    BackendKind backend,
    boolean shareGpus,
    Link link,
    MemoryKind memory,
    Duration timeout,
    long nvshmemHeapBytes,
    boolean bulkCopies,
    AttentionEngine attention,
    Optional<Duration> untilDecided,
    Path cache,
    String python) {
  public static final Duration DEFAULT_TIMEOUT = Duration.ofMinutes(5);

  /// NVSHMEM's own default.
  public static final long DEFAULT_NVSHMEM_HEAP_BYTES = 1L << 30;

  /// Folder in the user's home, so that all sessions of a user share it.
  public static final Path DEFAULT_CACHE =
      Path.of(System.getProperty("user.home", "/"), ".cache", "braid");

  public static final String DEFAULT_PYTHON = "python3";

  /// Folder of compiled kernels in the cache.
  public static final String KERNELS = "kernels";

  /// Folder of chosen multiplication algorithms in the cache.
  public static final String ALGORITHMS = "algorithms";

  public static final String SHARE_GPUS = "BRAID_SHARE_GPUS";

  public static final String UNTIL_DECIDED = "BRAID_UNTIL_DECIDED_SECONDS";

  /// Address of the ranks' store, with the token that it requires.
  public record StoreAddress(String host, int port, String token) {}

  public Path kernels() {
    return cache.resolve(KERNELS);
  }

  public Path algorithms() {
    return cache.resolve(ALGORITHMS);
  }

  /// Returns whether ranks may share GPUs.
  public static boolean sharesGpus(Map<String, String> variables) {
    return new Reader(variables).choice(SHARE_GPUS, "1", "0", false);
  }

  /// Returns the GPU of this rank: ranks of a machine are dealt over its GPUs round robin.
  ///
  /// @param count number of GPUs
  public int gpu(int count) {
    return gpu(local.rank(), count);
  }

  private int gpu(int localRank, int count) {
    return shareGpus && count > 0 ? localRank % count : localRank;
  }

  /// Returns whether a rank of the world has the same GPU as this one.
  public boolean hasSameGpu(int rank, int count) {
    int other = rank - (world.rank() - local.rank());
    return other >= 0 && other < local.size() && gpu(other, count) == gpu(count);
  }

  /// Returns the largest number of ranks on a GPU, the same on all ranks of a machine.
  public int ranksPerGpu(int count) {
    return shareGpus && count > 0 ? Math.ceilDiv(local.size(), count) : 1;
  }

  /// Reads this process's environment.
  public static Env ofProcess() {
    return read(System.getenv());
  }

  /// Reads the variables. Without any the world has one rank; those that are set must be valid and
  /// complete.
  public static Env read(Map<String, String> variables) {
    var reader = new Reader(variables);
    reader.checkLibraries();
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
        reader.get("BRAID_HOST"),
        reader.store(world),
        reader
            .get("BRAID_BACKEND")
            .map(name -> BackendKind.parse(name, "BRAID_BACKEND"))
            .orElse(BackendKind.AUTO),
        sharesGpus(variables),
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
        reader.choice("BRAID_WORKER_COPIES", "bulk", "loads", true),
        reader.get("BRAID_ATTENTION").map(AttentionEngine::parse).orElse(AttentionEngine.AUTO),
        reader.number(UNTIL_DECIDED, 1, Integer.MAX_VALUE).map(Duration::ofSeconds),
        reader.path("BRAID_CACHE").orElse(DEFAULT_CACHE),
        reader.get("BRAID_PYTHON").orElse(DEFAULT_PYTHON));
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
        // Reported below, as a number out of range is.
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

    /// Path, relative to the folder in which the ranks were started.
    Optional<Path> path(String name) {
      return get(name).map(text -> Path.of(text).toAbsolutePath());
    }

    /// Returns whether a variable has the first of its two values.
    boolean choice(String name, String first, String second, boolean byDefault) {
      var value = get(name).orElse(byDefault ? first : second);
      if (!value.equals(first) && !value.equals(second)) {
        throw new BraidException(
            "%s must be %s or %s but was %s".formatted(name, first, second, value));
      }
      return value.equals(first);
    }

    /// Checks the variables that name libraries, which the loader reads itself.
    void checkLibraries() {
      try {
        get(Libraries.WITHOUT).ifPresent(Libraries::without);
        get(Libraries.FOLDERS).ifPresent(Libraries::checkFolders);
      } catch (IllegalArgumentException e) {
        throw new BraidException(String.valueOf(e.getMessage()), e);
      }
    }
  }
}
