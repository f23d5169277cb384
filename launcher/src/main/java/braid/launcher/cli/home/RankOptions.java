package braid.launcher.cli.home;

import braid.launcher.machine.BackendChoice;
import braid.launcher.machine.RankCount;
import braid.launcher.output.OutputLimit;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import braid.model.Link;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// Options of all commands that start ranks.
public final class RankOptions {
  private static final String SHARE_GPUS = "--share-gpus";

  @Option(
      names = {"-n", "--ranks"},
      paramLabel = "RANKS",
      description = "Number of ranks. Default: BRAID_RANKS, else one per GPU, else 4.")
  private @Nullable String ranks;

  @Option(
      names = "--backend",
      paramLabel = "BACKEND",
      description =
          "auto, host or cuda. Default: auto, which is cuda if there is a GPU for each rank.")
  private @Nullable String backend;

  @Option(
      names = SHARE_GPUS,
      description =
          "Deals the ranks over the GPUs if there are fewer GPUs than ranks: for order and correctness, not for times."
              + " Default: BRAID_SHARE_GPUS, else one GPU per rank.")
  private boolean shareGpus;

  @Option(
      names = "--link",
      paramLabel = "LINK",
      description =
          "The link that the host backend simulates, for example 0.25GB/s,20us or 400Gb/s (b: bits).")
  private @Nullable String link;

  @Option(
      names = OutputLimit.OPTION,
      paramLabel = "SIZE",
      description =
          "Limit of a cell's output, for example 16MiB: its first and its last part are kept,"
              + " the rest is counted. Default: 4MiB.")
  private @Nullable String outputLimit;

  @Mixin private HostOptions hosts = new HostOptions();

  /// Returns whether the command line limits the output of a cell.
  public boolean limitsOutput() {
    return outputLimit != null;
  }

  /// Returns the options of ranks that start now: from the command line, else the environment, else
  /// by default.
  public SessionOptions session(Env env, RankCount machine, Path home) {
    return options(count(env, machine), env, machine, home);
  }

  private SessionOptions options(int count, Env env, RankCount machine, Path home) {
    var choice =
        hosts.isLocal()
            ? BackendChoice.of(
                requestedBackend(env), backendSource(), count, machine.gpus(), sharing(env))
            : hosts.backend(requestedBackend(env), backendSource(), sharing(env));
    var local = new SessionOptions(count, choice, link(env), home);
    var options = hosts.isLocal() ? local : local.starter(hosts.starter(count, env));
    return outputLimit == null ? options : options.outputLimit(OutputLimit.parse(outputLimit));
  }

  private int count(Env env, RankCount machine) {
    if (!hosts.isLocal()) {
      return hosts.count(Optional.ofNullable(ranks), env);
    }
    return requestedRanks(machine)
        .or(() -> env.ranks().map(text -> machine.parse("BRAID_RANKS", text)))
        .orElseGet(() -> machine.byDefault(requestedBackend(env)));
  }

  /// Returns the options of a kernel, whose command line was stored long before: BRAID_RANKS
  /// overrides its rank count.
  public SessionOptions ofKernel(Env env, RankCount machine) {
    var count =
        hosts.isLocal()
            ? env.ranks().map(text -> machine.parse("BRAID_RANKS", text))
            : Optional.<Integer>empty();
    return options(
        count.orElseGet(() -> count(env, machine)), env, machine, Path.of("").toAbsolutePath());
  }

  /// Returns the value of `-n`, checked; empty if it is absent.
  public Optional<Integer> requestedRanks(RankCount machine) {
    return Optional.ofNullable(ranks)
        .map(
            text ->
                hosts.isLocal()
                    ? machine.parse("-n", text)
                    : hosts.count(Optional.of(text), Env.here()));
  }

  private BackendKind requestedBackend(Env env) {
    return Optional.ofNullable(backend)
        .or(env::backend)
        .map(name -> BackendKind.parse(name, backendSource()))
        .orElse(BackendKind.AUTO);
  }

  private String backendSource() {
    return backend != null ? "--backend" : "BRAID_BACKEND";
  }

  /// Returns the option or variable by which ranks may share GPUs. An explicit `--backend host`
  /// overrides the variable.
  private Optional<String> sharing(Env env) {
    if (shareGpus) {
      return Optional.of(SHARE_GPUS);
    }
    boolean onHost = backend != null && requestedBackend(env) == BackendKind.HOST;
    return onHost ? Optional.empty() : env.sharing();
  }

  private Optional<String> link(Env env) {
    var text = Optional.ofNullable(link).or(env::link);
    text.ifPresent(Link::parse);
    return text;
  }

  /// Throws if the options are invalid, before they are stored.
  public void check(Env env, RankCount machine) {
    session(env, machine, Path.of(""));
  }

  /// Returns these options as arguments.
  public List<String> arguments(RankCount machine) {
    var arguments = new ArrayList<String>();
    requestedRanks(machine).ifPresent(count -> arguments.addAll(List.of("-n", count.toString())));
    if (backend != null) {
      arguments.addAll(List.of("--backend", backend));
    }
    if (shareGpus) {
      arguments.add(SHARE_GPUS);
    }
    if (link != null) {
      arguments.addAll(List.of("--link", link));
    }
    if (outputLimit != null) {
      arguments.addAll(List.of(OutputLimit.OPTION, outputLimit));
    }
    arguments.addAll(hosts.arguments());
    return arguments;
  }

  /// Returns the options of ranks that this process does not start itself.
  public HostOptions hosts() {
    return hosts;
  }

  /// Ends what the options have started: the agents of ranks that others started.
  public void close() {
    hosts.close();
  }
}
