package braid.launcher.cli.home;

import braid.BraidException;
import braid.Link;
import braid.launcher.session.RankCount;
import braid.launcher.session.SessionOptions;
import java.nio.file.Path;
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
      description = "auto, host or cuda. This version has the host backend only. Default: auto.")
  private @Nullable String backend;

  @Option(
      names = "--link",
      paramLabel = "LINK",
      description = "The link that the host backend plays, for example 0.25GB/s,20us.")
  private @Nullable String link;

  /// For a command that starts ranks now: what the options say, else the environment, else what is
  /// here.
  public SessionOptions session(Env env, RankCount machine, Path home) {
    return new SessionOptions(count(env, machine), backend(env, machine), link(env), home);
  }

  private int count(Env env, RankCount machine) {
    return wished(machine)
        .or(() -> env.ranks().map(text -> machine.parse("BRAID_RANKS", text)))
        .orElseGet(() -> machine.byDefault(backend(env, machine)));
  }

  /// For a kernel, whose options stand in a file that was written long before: the environment, if
  /// it says so, overrides their rank count.
  public SessionOptions ofKernel(Env env, RankCount machine) {
    var count = env.ranks().map(text -> machine.parse("BRAID_RANKS", text));
    return new SessionOptions(
        count.orElseGet(() -> count(env, machine)),
        backend(env, machine),
        link(env),
        Path.of("").toAbsolutePath());
  }

  /// What `-n` says, checked; empty where it does not.
  public Optional<Integer> wished(RankCount machine) {
    return Optional.ofNullable(ranks).map(text -> machine.parse("-n", text));
  }

  private String backend(Env env, RankCount machine) {
    var from = backend != null ? "--backend" : "BRAID_BACKEND";
    var name = Optional.ofNullable(backend).or(env::backend).orElse("auto");
    if (!BACKENDS.contains(name)) {
      throw new BraidException(
          "%s must be one of %s but was %s; try host"
              .formatted(from, String.join(", ", BACKENDS), name));
    }
    if (name.equals("cuda") && machine.gpus() == 0) {
      throw new BraidException(
          "%s cuda needs a GPU but there is none (no /dev/nvidia0); try host".formatted(from));
    }
    return name;
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
    return arguments;
  }
}
