package braid.launcher.hosts;

import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Place of an agent among those that an engine has started, from the engine's variables.
///
/// @param size number of ranks; 0 if the engine does not tell
/// @param source variable with the rank
public record RankPlace(int rank, int size, String host, String source) {
  private static final Path HOST_NAME = Path.of("/proc/sys/kernel/hostname");

  /// Variables of an engine.
  ///
  /// @param sizes variables with the number of ranks, of which the first one that is set counts
  private record Engine(String rank, List<String> sizes) {}

  /// Asked in this order. Inner engines come first: a job of Slurm may run mpirun or torchrun, and
  /// its batch script has the variables of a rank 0.
  private static final List<Engine> ENGINES =
      List.of(
          new Engine("BRAID_RANK", List.of()),
          new Engine("OMPI_COMM_WORLD_RANK", List.of("OMPI_COMM_WORLD_SIZE")),
          new Engine("PMI_RANK", List.of("PMI_SIZE")),
          new Engine("RANK", List.of("WORLD_SIZE")),
          new Engine("SLURM_PROCID", List.of("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")),
          new Engine("LWS_WORKER_INDEX", List.of("LWS_GROUP_SIZE")),
          new Engine("JOB_COMPLETION_INDEX", List.of()));

  /// @throws BraidException if no engine tells the rank
  public static RankPlace of(Map<String, String> variables) {
    for (var engine : ENGINES) {
      var rank = get(variables, engine.rank);
      if (rank.isPresent()) {
        int size =
            engine.sizes.stream()
                .flatMap(name -> get(variables, name).map(text -> number(name, text)).stream())
                .findFirst()
                .orElse(0);
        return new RankPlace(number(engine.rank, rank.get()), size, host(variables), engine.rank);
      }
    }
    throw new BraidException(
        "braid rank must know its rank but none of %s is set; set BRAID_RANK, or start it with srun, mpirun or torchrun"
            .formatted(String.join(", ", ENGINES.stream().map(Engine::rank).toList())));
  }

  private static Optional<String> get(Map<String, String> variables, String name) {
    return Optional.ofNullable(variables.get(name)).map(String::strip).filter(s -> !s.isEmpty());
  }

  private static int number(String name, String text) {
    try {
      int number = Integer.parseInt(text);
      if (number >= 0) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Reported below, as a negative number is.
    }
    throw new BraidException(
        "%s must be a number of 0 or more but was %s; check what sets it".formatted(name, text));
  }

  private static String host(Map<String, String> variables) {
    return get(variables, "BRAID_HOST")
        .or(() -> get(variables, "SLURMD_NODENAME"))
        .orElseGet(RankPlace::hostName);
  }

  private static String hostName() {
    try {
      return Files.readString(HOST_NAME).strip();
    } catch (IOException e) {
      throw new BraidException(
          "the name of this host cannot be read (%s); set BRAID_HOST".formatted(e), e);
    }
  }
}
