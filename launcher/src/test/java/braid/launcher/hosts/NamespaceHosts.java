package braid.launcher.hosts;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Hosts that are sets of namespaces of this machine (network, name, mounts, IPC, processes), with
/// a `/dev/shm` and a `/run` of their own. A bridge joins them with the test.
public final class NamespaceHosts {
  /// Lock of tests on such hosts, each of which keeps two cores busy.
  public static final String CORES = "cores of hosts";

  private static final String PAUSE = "sleep 3600";

  /// First process of a host. It reaps orphans.
  private static final String INIT =
      """
      set -e
      hostname "$1"
      mount -t tmpfs tmpfs /run
      mount -t tmpfs tmpfs /dev/shm
      echo up
      while true; do %s & wait $!; done
      """
          .formatted(PAUSE);

  /// Enters a directory in the mounts of the host, then starts a command.
  private static final String IN_DIRECTORY = "cd \"$0\" && exec \"$@\"";

  private static final AtomicInteger MADE = new AtomicInteger();

  /// Distinguishes the names of concurrent test processes.
  private final int number = (int) (ProcessHandle.current().pid() % 250);

  /// Devices of an earlier test may still be ending.
  private final String suffix = number + "t" + MADE.incrementAndGet();

  private final String bridge = "bb" + suffix;
  private final String network = "10.231." + number + ".";
  private final Map<Integer, Process> roots = new HashMap<>();
  private boolean damaged;

  /// @param count number of hosts, `h1` and following
  public NamespaceHosts(int count) throws IOException, InterruptedException {
    var refusal = refusal(space(0));
    assumeTrue(refusal.isEmpty(), "namespaces are not available: " + refusal);
    run("ip", "link", "add", bridge, "type", "bridge");
    run("ip", "link", "set", bridge, "up");
    run("ip", "addr", "add", frontAddress() + "/24", "dev", bridge);
    for (int host = 1; host <= count; host++) {
      var space = space(host);
      run("ip", "netns", "add", space);
      run("ip", "link", "add", link(host), "type", "veth", "peer", "name", "eth0", "netns", space);
      run("ip", "link", "set", link(host), "master", bridge, "up");
      run("ip", "-n", space, "addr", "add", address(host) + "/24", "dev", "eth0");
      run("ip", "-n", space, "link", "set", "eth0", "up");
      run("ip", "-n", space, "link", "set", "lo", "up");
      boot(host);
    }
  }

  private void boot(int host) throws IOException {
    var command =
        new ArrayList<>(
            List.of("ip", "netns", "exec", space(host), "unshare", "-u", "-m", "-i", "-p", "-f"));
    command.addAll(List.of("--kill-child", "--mount-proc", "sh", "-c", INIT, "sh", name(host)));
    var root = new ProcessBuilder(command).redirectErrorStream(true).start();
    roots.put(host, root);
    var line = root.inputReader().readLine();
    if (!"up".equals(line)) {
      throw new IOException("a host did not come up: " + line);
    }
  }

  /// Runs a command to its end and returns its output.
  public static String run(String... command) throws IOException, InterruptedException {
    return run(List.of(command));
  }

  static String run(List<String> command) throws IOException, InterruptedException {
    var process = new ProcessBuilder(command).redirectErrorStream(true).start();
    var text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      throw new IOException(String.join(" ", command) + ": " + text);
    }
    return text;
  }

  /// Reason for which this machine has no namespaces; empty if it has.
  private static String refusal(String probe) throws InterruptedException {
    try {
      run("ip", "netns", "add", probe);
      run("ip", "netns", "del", probe);
      run("unshare", "-u", "-m", "-i", "-p", "-f", "--mount-proc", "true");
      return "";
    } catch (IOException e) {
      return String.valueOf(e.getMessage());
    }
  }

  private String space(int host) {
    return "braid-" + suffix + "-h" + host;
  }

  private String link(int host) {
    return "bv" + suffix + "h" + host;
  }

  public static String name(int host) {
    return "h" + host;
  }

  public String address(int host) {
    return network + host;
  }

  /// Network of the hosts, in CIDR notation.
  public String network() {
    return address(0) + "/24";
  }

  /// Address of the test, on the bridge.
  public String frontAddress() {
    return network + "254";
  }

  private long init(int host) {
    return Objects.requireNonNull(roots.get(host)).children().findFirst().orElseThrow().pid();
  }

  /// Returns the command as it is started on a host.
  public List<String> command(int host, Path directory, List<String> command) {
    var entering = new ArrayList<>(List.of("nsenter", "-t", Long.toString(init(host))));
    entering.addAll(List.of("-n", "-u", "-m", "-i", "-p", "sh", "-c", IN_DIRECTORY));
    entering.add(directory.toString());
    entering.addAll(command);
    return entering;
  }

  /// Cuts the link between a host and the bridge.
  public void cut(int host) throws IOException, InterruptedException {
    damaged = true;
    run("ip", "link", "set", link(host), "down");
  }

  /// Ends a host as a power failure does: no process of it sends a last packet.
  public void kill(int host) throws IOException, InterruptedException {
    cut(host);
    Objects.requireNonNull(roots.get(host)).children().forEach(ProcessHandle::destroyForcibly);
  }

  /// Returns whether a host was cut off or killed.
  boolean damaged() {
    return damaged;
  }

  /// Returns the command lines of the processes of a host, by their pid in the test's namespace.
  /// Its first process and processes that have ended are left out.
  public Map<Long, String> processes(int host) throws IOException {
    long init = init(host);
    var space = Files.readSymbolicLink(Path.of("/proc", Long.toString(init), "ns/pid"));
    var found = new TreeMap<Long, String>();
    for (var each : ProcessHandle.allProcesses().filter(each -> each.pid() != init).toList()) {
      if (space.equals(processSpace(each))) {
        var line = commandLine(each);
        if (!line.isEmpty() && !line.equals(PAUSE)) {
          found.put(each.pid(), line);
        }
      }
    }
    return found;
  }

  private static @Nullable Path processSpace(ProcessHandle process) {
    try {
      return Files.readSymbolicLink(Path.of("/proc", Long.toString(process.pid()), "ns/pid"));
    } catch (IOException e) {
      return null; // It has ended.
    }
  }

  /// Returns the whole command line, which may be longer than Java's; empty if the process has
  /// ended.
  static String commandLine(ProcessHandle process) {
    try {
      var file = Path.of("/proc", Long.toString(process.pid()), "cmdline");
      return Files.readString(file, StandardCharsets.ISO_8859_1).replace('\0', ' ').strip();
    } catch (IOException e) {
      return "";
    }
  }

  /// Returns the files of a host's shared memory.
  public List<Path> sharedMemory(int host) throws IOException {
    try (var files = Files.list(Path.of("/proc", Long.toString(init(host)), "root/dev/shm"))) {
      return files.toList();
    }
  }

  /// Returns a process of a host whose command line contains the text, the newest one.
  public Optional<ProcessHandle> process(int host, String text) throws IOException {
    return processes(host).entrySet().stream()
        .filter(each -> each.getValue().contains(text))
        .reduce((_, last) -> last)
        .flatMap(each -> ProcessHandle.of(each.getKey()));
  }

  /// Ends all processes of the hosts and removes their network.
  public void close() throws InterruptedException {
    for (var root : roots.values()) {
      root.children().forEach(ProcessHandle::destroyForcibly);
      root.waitFor();
    }
    for (var host : roots.keySet()) {
      quietly("ip", "link", "del", link(host));
      quietly("ip", "netns", "del", space(host));
    }
    quietly("ip", "link", "del", bridge);
  }

  private static void quietly(String... command) throws InterruptedException {
    try {
      run(command);
    } catch (IOException e) {
      // It was never made.
    }
  }
}
