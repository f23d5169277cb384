package braid;

import braid.internal.peer.PeerProcess;
import braid.internal.rank.Closing;
import braid.model.BraidException;
import braid.model.Timing;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// Another stack beside the ranks: a Python process per rank, whose steps a study measures in the
/// same rounds as Braid's.
///
/// ```java
/// try (var torch = Peers.torch("all_reduce.py", "4096")) {
///   Tuner.on(world).gemm(spec).peers(torch).run();
/// }
/// ```
///
/// Each process gets torchrun's variables, so `torch.distributed` finds the other ones, and runs
/// the script under the name `braid_peer`. The script sets `steps`, a dict of names and functions:
///
/// ```python
/// dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
/// a, b, out = ...
/// def unfused():
///     torch.mm(a, b, out=out)
///     dist.all_reduce(out)
/// steps = {"unfused": unfused}
/// ```
///
/// A step may leave work on torch's current stream. Between its turns a process waits and computes
/// nothing. It keeps its GPU memory, which a study needs beside Braid's.
public final class Peers implements AutoCloseable {
  private final ProcessGroup group;
  private final String name;
  private final PeerProcess process;
  private final String versions;
  private final List<String> steps;

  private Peers(ProcessGroup group, String name, PeerProcess process) {
    this.group = group;
    this.name = name;
    this.process = process;
    var described = process.steps();
    versions = described.getFirst();
    steps = List.copyOf(described.subList(1, described.size()));
    group.agree("steps of " + name, String.join(", ", steps));
  }

  /// Starts a process of the script on each rank of the world.
  public static Peers torch(String script, String... arguments) {
    return torch(ProcessGroup.world(), script, arguments);
  }

  /// Starts a process of the script on each rank of the group, with the interpreter of
  /// `BRAID_PYTHON`, by default `python3`. Returns when all of them have run the script. All
  /// members call it alike.
  ///
  /// @param script path, relative to the folder of the notebook
  public static Peers torch(ProcessGroup group, String script, String... arguments) {
    Given.check("group", group);
    Given.check("script", script);
    Given.check("arguments", arguments);
    var path = path(script);
    var name = path.getFileName().toString();
    group.agree("Peers.torch of " + name, String.join(" ", arguments));
    var context = group.context();
    var command = new ArrayList<>(List.of(context.env().python(), path.toString()));
    command.addAll(List.of(arguments));
    var title = "`%s` of rank %d".formatted(name, group.rank());
    var process = new PeerProcess(title, command, variables(group), context.waits());
    try {
      var peers = new Peers(group, name, process);
      group.own(peers);
      return peers;
    } catch (RuntimeException e) {
      Closing.after(e, process);
      throw e;
    }
  }

  private static Path path(String script) {
    try {
      var path = Path.of(script).toAbsolutePath();
      if (Files.isRegularFile(path)) {
        return path;
      }
    } catch (InvalidPathException e) {
      // Refused below, as a file that is not there.
    }
    throw new BraidException(
        "the script of peers must be a file but `%s` is none; give its path from %s"
            .formatted(script, Path.of("").toAbsolutePath()));
  }

  /// Returns the variables that torchrun would set.
  private static Map<String, String> variables(ProcessGroup group) {
    var env = group.context().env();
    var hosts = group.hosts();
    var address = hosts.size() == 1 ? "127.0.0.1" : hosts.getFirst().name();
    var threads = System.getenv().getOrDefault("OMP_NUM_THREADS", "1");
    return Map.of(
        "RANK", Integer.toString(group.rank()),
        "WORLD_SIZE", Integer.toString(group.size()),
        "LOCAL_RANK", Integer.toString(env.local().rank()),
        "LOCAL_WORLD_SIZE", Integer.toString(env.local().size()),
        "MASTER_ADDR", address,
        "MASTER_PORT", Long.toString(group.broadcast(group.rank() == 0 ? freePort() : 0, 0)),
        "OMP_NUM_THREADS", threads);
  }

  private static int freePort() {
    try (var socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    } catch (IOException e) {
      throw new BraidException("no port is free for peers: " + e.getMessage(), e);
    }
  }

  /// Returns the names of the script's steps, in its order.
  public List<String> steps() {
    return steps;
  }

  /// Returns the script and the versions of what it runs on: `all_reduce.py: torch 2.11.0, NCCL
  /// 2.28.9`.
  @Override
  public String toString() {
    return name + ": " + versions;
  }

  /// Returns a step's name in a study: `all_reduce: unfused`.
  String title(String step) {
    return name.replaceFirst("\\.py$", "") + ": " + step;
  }

  /// Returns the nanoseconds of each iteration on this rank. All ranks begin together.
  long[] time(String step, int iterations, Timing form) {
    if (process.isClosed()) {
      throw new BraidException(
          "the peers of `%s` have ended; start them again: Peers.torch(...)".formatted(name));
    }
    return Measurement.time(group, iterations, _ -> process.time(step, iterations, form));
  }

  /// Ends the processes. Closing twice is harmless, and no rank waits for another. The group closes
  /// peers that are left.
  @Override
  public void close() {
    group.disown(this);
    process.close();
  }
}
