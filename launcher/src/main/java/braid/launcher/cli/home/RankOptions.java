package braid.launcher.cli.home;

import braid.launcher.machine.BackendChoice;
import braid.launcher.machine.RankCount;
import braid.launcher.output.OutputLimit;
import braid.launcher.session.SessionOptions;
import braid.model.Link;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// The options that say what ranks to start: the same for every command that starts some.
public final class RankOptions {
  @Option(
      names = {"-n", "--ranks"},
      paramLabel = "RANKS",
      description = "How many ranks; else BRAID_RANKS, else one a GPU, else 4.")
  private @Nullable String ranks;

  @Option(
      names = "--backend",
      paramLabel = "BACKEND",
      description =
          "auto, host or cuda. Default: auto, which is cuda where there is a GPU for each rank.")
  private @Nullable String backend;

  @Option(
      names = "--link",
      paramLabel = "LINK",
      description =
          "The link that the host backend plays, for example 0.25GB/s,20us or 400Gb/s (b: bits).")
  private @Nullable String link;

  @Option(
      names = OutputLimit.OPTION,
      paramLabel = "SIZE",
      description =
          "How much a cell may put out, for example 16MiB: its first and its last part are kept,"
              + " the rest is counted. Default: 4MiB.")
  private @Nullable String outputLimit;

  /// For a command that starts ranks now: what the options say, else the environment, else what is
  /// here.
  public SessionOptions session(Env env, RankCount machine, Path home) {
    return options(count(env, machine), env, machine, home);
  }

  private SessionOptions options(int count, Env env, RankCount machine, Path home) {
    var choice = BackendChoice.of(wish(env), wisher(), count, machine.gpus());
    return new SessionOptions(count, choice, link(env), home, outputLimit());
  }

  private OutputLimit outputLimit() {
    return outputLimit == null ? OutputLimit.DEFAULT : OutputLimit.parse(outputLimit);
  }

  private int count(Env env, RankCount machine) {
    return wished(machine)
        .or(() -> env.ranks().map(text -> machine.parse("BRAID_RANKS", text)))
        .orElseGet(() -> machine.byDefault(wish(env)));
  }

  /// For a kernel, whose options stand in a file that was written long before: the environment, if
  /// it says so, overrides their rank count.
  public SessionOptions ofKernel(Env env, RankCount machine) {
    var count = env.ranks().map(text -> machine.parse("BRAID_RANKS", text));
    return options(
        count.orElseGet(() -> count(env, machine)), env, machine, Path.of("").toAbsolutePath());
  }

  /// What `-n` says, checked; empty where it does not.
  public Optional<Integer> wished(RankCount machine) {
    return Optional.ofNullable(ranks).map(text -> machine.parse("-n", text));
  }

  private String wish(Env env) {
    var wish = Optional.ofNullable(backend).or(env::backend).orElse(BackendChoice.AUTO);
    BackendChoice.check(wish, wisher());
    return wish;
  }

  private String wisher() {
    return backend != null ? "--backend" : "BRAID_BACKEND";
  }

  private Optional<String> link(Env env) {
    var text = Optional.ofNullable(link).or(env::link);
    text.ifPresent(Link::parse);
    return text;
  }

  /// Throws what is wrong with the options, before they are written down.
  public void check(Env env, RankCount machine) {
    session(env, machine, Path.of(""));
  }

  /// The same options again, as arguments.
  public List<String> arguments(RankCount machine) {
    var arguments = new ArrayList<String>();
    wished(machine).ifPresent(count -> arguments.addAll(List.of("-n", count.toString())));
    if (backend != null) {
      arguments.addAll(List.of("--backend", backend));
    }
    if (link != null) {
      arguments.addAll(List.of("--link", link));
    }
    if (outputLimit != null) {
      arguments.addAll(List.of(OutputLimit.OPTION, outputLimit));
    }
    return arguments;
  }
}
