package braid.launcher.cli.home;

import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.session.SessionOptions;
import braid.model.MemoryKind;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// Options of the commands that run a user's notebooks or programs.
public final class WorkOptions {
  @Option(
      names = "--memory",
      paramLabel = "KIND",
      description =
          "Kind of symmetric memory of tensors and pipelines that name none: auto, native, ipc,"
              + " nccl or nvshmem. Default: BRAID_SYMMETRIC_MEMORY, else auto.")
  private @Nullable String memory;

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      description = "Ends the run, of all notebooks together, after this time.")
  private @Nullable String timeout;

  public SessionOptions session(SessionOptions options) {
    return memory == null ? options : options.memory("--memory", MemoryKind.parse(memory));
  }

  /// @param cellTimeout limit of one cell
  public TimeLimits limits(@Nullable String cellTimeout) {
    return TimeLimits.of(timeout, cellTimeout);
  }

  public Optional<String> timeout() {
    return Optional.ofNullable(timeout);
  }
}
