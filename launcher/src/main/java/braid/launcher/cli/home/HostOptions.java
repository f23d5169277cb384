package braid.launcher.cli.home;

import braid.launcher.hosts.AgentJob;
import braid.launcher.hosts.JoinKey;
import braid.launcher.hosts.JoinedRanks;
import braid.launcher.machine.BackendChoice;
import braid.launcher.notebook.run.TimeLimits;
import braid.model.BackendKind;
import braid.model.BraidException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Stack;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.IParameterConsumer;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/// Options of ranks that this process does not start itself, which may be on several hosts.
public final class HostOptions {
  static final String LAUNCHER = "--launcher";
  private static final String LISTEN = "--listen";
  private static final String JOIN = "--join";
  private static final String JOIN_TIMEOUT = "--join-timeout";
  private static final String LAUNCHER_OPTIONS = "--launcher-options";

  private static final Path DEFAULT_FILE = Path.of("braid.join");
  private static final int MOST_RANKS = 4096;

  /// Starters of ranks.
  private enum Launcher {
    LOCAL,
    SLURM,
    MPI,
    ATTACH;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  @Option(
      names = LAUNCHER,
      paramLabel = "LAUNCHER",
      description =
          "Who starts the ranks: local (this command, on this host), slurm (srun in this allocation),"
              + " mpi (mpirun), or attach: somebody else, by braid rank. Default: local.")
  private @Nullable String launcher;

  @Option(
      names = LISTEN,
      paramLabel = "ADDRESS[:PORT]",
      description =
          "Address of this host at which ranks of other hosts join, over TLS. Default: only this"
              + " host's ranks can, at 127.0.0.1.")
  private @Nullable String listen;

  @Option(
      names = JOIN,
      paramLabel = "FILE",
      description =
          "With --launcher attach: the file in which ranks find the address and the secret, written"
              + " with mode 0600. Default: braid.join, or none if BRAID_JOIN has a key made ahead.")
  private @Nullable Path join;

  @Option(
      names = JOIN_TIMEOUT,
      paramLabel = "TIME",
      description = "Time for all ranks to join: 90s, 10m or 1h. Default: 5m.")
  private @Nullable String joinTimeout;

  @Option(
      names = LAUNCHER_OPTIONS,
      paramLabel = "TEXT",
      parameterConsumer = Verbatim.class,
      description = "Further options of srun or mpirun: --launcher-options \"--host h1:4,h2:4\".")
  private @Nullable String launcherOptions;

  private @Nullable JoinedRanks joined;

  /// Takes the next argument as it is, even if it is the name of one of Braid's own options.
  private static final class Verbatim implements IParameterConsumer {
    @Override
    public void consumeParameters(Stack<String> arguments, ArgSpec option, CommandSpec command) {
      if (arguments.isEmpty()) {
        throw new ParameterException(
            command.commandLine(), LAUNCHER_OPTIONS + " needs the options of srun or mpirun");
      }
      option.setValue(arguments.pop());
    }
  }

  /// Takes the options that are not given from those of an earlier run, unless that had another
  /// launcher.
  ///
  /// @param run its id, for messages
  /// @param earlier what [#arguments] returned then
  public void completeFrom(String run, List<String> earlier) {
    HostOptions then;
    try {
      then = CommandLine.populateCommand(new HostOptions(), earlier.toArray(String[]::new));
    } catch (ParameterException e) {
      throw new BraidException(
          "the launcher's options of %s must be those of this version but are not: %s; run its notebook by braid run --launcher"
              .formatted(run, e.getMessage()),
          e);
    }
    if (launcher == null && then.launcher() == Launcher.ATTACH) {
      throw new BraidException(
          "a run must have started its ranks itself to be repeated but others started those of %s (%s); try braid rerun %s --launcher attach, and start them again by braid rank"
              .formatted(run, LAUNCHER + " attach", run));
    }
    if (launcher != null && launcher() != then.launcher()) {
      return;
    }
    launcher = then.launcher;
    listen = listen == null ? then.listen : listen;
    join = join == null ? then.join : join;
    joinTimeout = joinTimeout == null ? then.joinTimeout : joinTimeout;
    launcherOptions = launcherOptions == null ? then.launcherOptions : launcherOptions;
  }

  private Launcher launcher() {
    if (launcher == null) {
      return Launcher.LOCAL;
    }
    return Stream.of(Launcher.values())
        .filter(each -> each.toString().equals(launcher))
        .findFirst()
        .orElseThrow(
            () ->
                new BraidException(
                    "%s must be local, slurm, mpi or attach but was %s"
                        .formatted(LAUNCHER, launcher)));
  }

  /// Returns true if this process starts the ranks itself.
  public boolean isLocal() {
    boolean local = launcher() == Launcher.LOCAL;
    if (local) {
      refuse(listen != null, LISTEN);
      refuse(join != null, JOIN);
      refuse(joinTimeout != null, JOIN_TIMEOUT);
    }
    refuse(launcherOptions != null && (local || launcher() == Launcher.ATTACH), LAUNCHER_OPTIONS);
    refuse(join != null && launcher() != Launcher.ATTACH, JOIN);
    return local;
  }

  private void refuse(boolean given, String option) {
    if (given) {
      throw new BraidException(
          "%s has no effect with %s %s; %s"
              .formatted(
                  option,
                  LAUNCHER,
                  launcher(),
                  option.equals(LAUNCHER_OPTIONS)
                      ? "try --launcher slurm or mpi"
                      : option.equals(JOIN)
                          ? "try --launcher attach"
                          : "try --launcher attach, slurm or mpi"));
    }
  }

  /// Returns the number of ranks, which this host's size does not limit.
  public int count(Optional<String> option, Env env) {
    var name = option.isPresent() ? "-n" : env.ranks().isPresent() ? "BRAID_RANKS" : "SLURM_NTASKS";
    var text =
        option
            .or(env::ranks)
            .or(() -> launcher() == Launcher.SLURM ? env.slurmTasks() : Optional.empty())
            .orElseThrow(
                () ->
                    new BraidException(
                        "%s %s needs the number of ranks; try -n 4"
                            .formatted(LAUNCHER, launcher())));
    try {
      int count = Integer.parseInt(text.strip());
      if (count >= 1 && count <= MOST_RANKS) {
        return count;
      }
    } catch (NumberFormatException e) {
      // Reported below, as a number out of range is.
    }
    throw new BraidException(
        "%s must be a number of ranks, 1..%d, but was \"%s\"; try 4"
            .formatted(name, MOST_RANKS, text));
  }

  /// Returns the backend: this host cannot tell the GPUs of others, so they are used on request.
  ///
  /// @param sharing option or variable by which ranks may share GPUs; empty if each needs its own
  public BackendChoice backend(BackendKind requested, String from, Optional<String> sharing) {
    if (sharing.isPresent()) {
      if (requested == BackendKind.HOST) {
        throw new BraidException(
            "%s needs GPUs but %s is host; leave one of them out".formatted(sharing.get(), from));
      }
      return BackendChoice.sharedGpus(sharing.get());
    }
    return switch (requested) {
      case CUDA, HOST -> new BackendChoice(requested, "set by " + from);
      case AUTO ->
          new BackendChoice(
              BackendKind.HOST,
              "%s %s: --backend cuda uses the GPUs of its hosts".formatted(LAUNCHER, launcher()));
    };
  }

  /// Returns the starter of these ranks, which is the same for all sessions of the command.
  public JoinedRanks starter(int count, Env env) {
    var known = joined;
    if (known == null) {
      known = new JoinedRanks(settings(count, env));
      joined = known;
    }
    return known;
  }

  private JoinedRanks.Settings settings(int count, Env env) {
    var chosen = launcher();
    boolean attach = chosen == Launcher.ATTACH;
    var key =
        attach && join == null
            ? env.join().map(text -> JoinKey.parse(JoinKey.VARIABLE, text))
            : Optional.<JoinKey>empty();
    if (key.isPresent() && listen == null) {
      throw new BraidException(
          "BRAID_JOIN is set, so %s must name an address of this host; try %s 0.0.0.0"
              .formatted(LISTEN, LISTEN));
    }
    var address = address(chosen, env);
    return new JoinedRanks.Settings(
        chosen.toString(),
        count,
        address,
        port().or(() -> key.map(JoinKey::port)).orElse(0),
        key,
        attach && key.isEmpty()
            ? Optional.of(WorkingDirectory.called().resolve(join == null ? DEFAULT_FILE : join))
            : Optional.empty(),
        Optional.ofNullable(joinTimeout)
            .map(text -> TimeLimits.duration(JOIN_TIMEOUT, text))
            .orElse(JoinedRanks.JOIN_TIMEOUT),
        Installation.version(),
        env.forHosts(),
        attach ? Optional.empty() : Optional.of(job(chosen, env)),
        arguments());
  }

  private AgentJob job(Launcher chosen, Env env) {
    var engine = chosen == Launcher.SLURM ? AgentJob.Engine.SLURM : AgentJob.Engine.MPI;
    if (env.program(engine.program()).isEmpty()) {
      throw new BraidException(
          "%s %s needs %s but PATH has none; load its module, or try --launcher attach"
              .formatted(LAUNCHER, chosen, engine.program()));
    }
    if (chosen == Launcher.SLURM && env.slurmHosts().isEmpty()) {
      throw new BraidException(
          "%s slurm needs an allocation but SLURM_JOB_NUM_NODES is not set; run it by sbatch or salloc"
              .formatted(LAUNCHER));
    }
    var options =
        launcherOptions == null || launcherOptions.isBlank()
            ? List.<String>of()
            : List.of(launcherOptions.strip().split("\\s+"));
    var agent = new ArrayList<>(Installation.command());
    agent.add("rank");
    return new AgentJob(engine, options, agent, env.variables());
  }

  private InetAddress address(Launcher chosen, Env env) {
    if (listen == null) {
      if (chosen == Launcher.SLURM && !env.slurmHosts().orElse("1").equals("1")) {
        throw new BraidException(
            "%s slurm on %s hosts needs %s with an address of this host that the others reach; try %s $(hostname -i)"
                .formatted(LAUNCHER, env.slurmHosts().orElse(""), LISTEN, LISTEN));
      }
      return InetAddress.getLoopbackAddress();
    }
    try {
      return InetAddress.getByName(listenAddress());
    } catch (UnknownHostException e) {
      throw new BraidException(
          "%s must be an address of this host but %s is unknown; try 0.0.0.0"
              .formatted(LISTEN, listen),
          e);
    }
  }

  /// Index of the colon before the port; -1 without a port. An IPv6 address has colons of its own,
  /// so it is in brackets.
  private int colon() {
    var text = String.valueOf(listen);
    int colon = text.lastIndexOf(':');
    return colon > text.lastIndexOf(']') ? colon : -1;
  }

  private String listenAddress() {
    var text = String.valueOf(listen);
    return (colon() < 0 ? text : text.substring(0, colon())).replaceAll("[\\[\\]]", "");
  }

  private Optional<Integer> port() {
    if (listen == null || colon() < 0) {
      return Optional.empty();
    }
    var text = listen.substring(colon() + 1);
    if (!text.matches("[0-9]{1,5}") || Integer.parseInt(text) > 0xffff) {
      throw new BraidException(
          "the port of %s must be 0..65535 but was %s; leave it out for a free one"
              .formatted(LISTEN, text));
    }
    return Optional.of(Integer.parseInt(text));
  }

  /// Returns these options as arguments.
  List<String> arguments() {
    var arguments = new ArrayList<String>();
    if (launcher != null) {
      arguments.addAll(List.of(LAUNCHER, launcher));
    }
    if (listen != null) {
      arguments.addAll(List.of(LISTEN, listen));
    }
    if (join != null) {
      arguments.addAll(List.of(JOIN, join.toAbsolutePath().toString()));
    }
    if (joinTimeout != null) {
      arguments.addAll(List.of(JOIN_TIMEOUT, joinTimeout));
    }
    if (launcherOptions != null) {
      // One argument, so that options of srun are not taken for options of braid.
      arguments.add(LAUNCHER_OPTIONS + "=" + launcherOptions);
    }
    return arguments;
  }

  /// Ends the agents.
  public void close() {
    if (joined != null) {
      joined.close();
    }
  }
}
