package braid.launcher.cli.home;

import braid.BraidException;
import braid.launcher.session.RankCount;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// The options that say what ranks to start: the same for every command that starts some.
public final class RankOptions {
  private static final List<String> BACKENDS = List.of("auto", "host", "cuda");

  @Option(
      names = {"-n", "--ranks"},
      paramLabel = "RANKS",
      description = "How many ranks; else BRAID_RANKS, else one a GPU, else 4.")
  private @Nullable String ranks;

  @Option(
      names = "--backend",
      paramLabel = "BACKEND",
      description = "auto, host or cuda; auto takes the GPUs where there are any. Default: auto.")
  private @Nullable String backend;

  @Option(
      names = "--link",
      paramLabel = "LINK",
      description = "The link that the host backend plays, for example 2GB/s,20us.")
  private @Nullable String link;

  /// For a command that starts ranks now: the option, else the environment, else what is here.
  public int count(Env env, RankCount machine) {
    if (ranks != null) {
      return machine.parse("-n", ranks);
    }
    return env.ranks()
        .map(text -> machine.parse("BRAID_RANKS", text))
        .orElseGet(() -> machine.byDefault(backend()));
  }

  /// For a kernel, whose options stand in a file that was written long before: the environment, if
  /// it says so, overrides them.
  public int countOfKernel(Env env, RankCount machine) {
    return env.ranks()
        .map(text -> machine.parse("BRAID_RANKS", text))
        .orElseGet(() -> count(env, machine));
  }

  /// What `-n` says, checked; empty where it does not.
  public Optional<Integer> wished(RankCount machine) {
    return Optional.ofNullable(ranks).map(text -> machine.parse("-n", text));
  }

  public String backend() {
    var name = backend == null ? "auto" : backend;
    if (!BACKENDS.contains(name)) {
      throw new BraidException(
          "--backend must be one of %s but was %s; try --backend host"
              .formatted(String.join(", ", BACKENDS), name));
    }
    return name;
  }

  /// @throws BraidException where it is asked for by name and cannot be had
  public String backendOf(RankCount machine) {
    if (backend().equals("cuda") && machine.gpus() == 0) {
      throw new BraidException(
          "--backend cuda needs a GPU but there is none (no /dev/nvidia0); try --backend host");
    }
    return backend();
  }

  public Optional<String> link() {
    return Optional.ofNullable(link);
  }

  /// The same options again, as arguments.
  public List<String> arguments(RankCount machine) {
    var arguments = new ArrayList<String>();
    wished(machine).ifPresent(count -> arguments.addAll(List.of("-n", count.toString())));
    if (backend != null) {
      arguments.addAll(List.of("--backend", backend()));
    }
    link().ifPresent(text -> arguments.addAll(List.of("--link", text)));
    return arguments;
  }
}
