package braid.launcher.soak;

import java.io.IOException;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/// Attacks one session until its time is over. After each attack the failure must have been
/// reported in time, the session must work, and no process may be left.
///
/// ```
/// attack ─▶ failure named? ─▶ %restart where a rank died ─▶ a pipeline verifies on all ranks ─▶ processes are the ranks'
/// ```
final class Soak {
  /// Guaranteed time until a failure is reported.
  static final Duration NAMED_WITHIN = Duration.ofSeconds(5);

  /// Time without heartbeats after which a freeze is reported.
  private static final Duration SILENCE = Duration.ofSeconds(5);

  /// Time after which a cell is considered hung.
  private static final Duration HANGS = Duration.ofSeconds(40);

  private static final Duration POLL = Duration.ofMillis(20);
  private static final int MOST_DELAY_MILLIS = 300;
  private static final int MOST_PAUSE_MILLIS = 500;
  private static final double NANOS_PER_SECOND = 1e9;

  /// Processes that soaks of this process have stopped.
  private static final Set<Long> FROZEN = ConcurrentHashMap.newKeySet();

  private static final Pattern PIDS = Pattern.compile("pids \\[([0-9, ]+)]");

  private final Victim victim;
  private final int ranks;
  private final Random random;
  private final Duration namedWithin;
  private final Consumer<Event> onEvent;
  private List<Long> pids = List.of();

  /// Cell of the last attack.
  private String last = "";

  /// @param namedWithin longest time until a failure is reported, and until processes have ended
  /// @param onEvent receives each event
  Soak(Victim victim, int ranks, long seed, Duration namedWithin, Consumer<Event> onEvent) {
    this.victim = victim;
    this.ranks = ranks;
    this.random = new Random(seed);
    this.namedWithin = namedWithin;
    this.onEvent = onEvent;
  }

  /// A broken guarantee.
  private static final class Fault extends Exception {
    private static final long serialVersionUID = 1;

    Fault(String message) {
      super(message);
    }
  }

  /// Warms up the session. Throws if it does not work at all.
  void begin() throws InterruptedException {
    try {
      for (int i = 0; i < 3; i++) {
        checkHealth();
      }
    } catch (Fault e) {
      throw new IllegalStateException("the session did not start: " + e.getMessage(), e);
    }
  }

  void until(long endNanos) throws InterruptedException, IOException {
    while (System.nanoTime() - endNanos < 0) {
      one(draw());
    }
  }

  private Attack draw() {
    while (true) {
      var attack = Attack.at(random.nextInt(Attack.weights()));
      boolean possible =
          switch (attack) {
            case TIME_LIMIT -> victim.hasLimits();
            // The front of a headless session is this process.
            case FRONT -> victim.front() != ProcessHandle.current().pid();
            default -> true;
          };
      if (possible) {
        return attack;
      }
    }
  }

  void one(Attack attack) throws InterruptedException, IOException {
    int rank = random.nextInt(ranks);
    var target = "rank " + rank;
    var named = OptionalDouble.empty();
    Optional<String> fault = Optional.empty();
    try {
      named = perform(attack, rank);
      recover(attack);
      checkProcesses();
    } catch (Fault e) {
      fault = Optional.of(e.getMessage() + "; the cell was: " + last.replace('\n', ' '));
      victim.renew();
      try {
        checkHealth();
      } catch (Fault again) {
        throw new IOException("a new session does not work either: " + again.getMessage(), again);
      }
    }
    onEvent.accept(new Event(victim.name(), attack, target, named, fault));
  }

  /// Performs an attack; returns the time until its failure was reported.
  private OptionalDouble perform(Attack attack, int rank) throws Fault, InterruptedException {
    return switch (attack) {
      case INTERRUPT -> {
        var cell = begun(SoakCells.endless(random, rank));
        delay(MOST_DELAY_MILLIS);
        long start = System.nanoTime();
        victim.interrupt();
        yield named(cell, start, List.of("interrupted"));
      }
      case TIME_LIMIT -> {
        int millis = 200 + random.nextInt(400);
        long start = System.nanoTime();
        var cell = begin(SoakCells.endless(random, rank), Optional.of(Duration.ofMillis(millis)));
        yield named(
            cell, start + TimeUnit.MILLISECONDS.toNanos(millis), List.of("must end within"));
      }
      case FAILURE -> {
        var failing = SoakCells.Failing.draw(random, rank, ranks);
        long start = System.nanoTime();
        yield named(begin(failing.code(), Optional.empty()), start, failing.says());
      }
      case FLOOD -> {
        var cell = begin(SoakCells.flood(random), Optional.empty());
        succeeds(cell);
        says(cell, List.of("flooded"));
        yield OptionalDouble.empty();
      }
      case PAUSE -> {
        var cell = begun(SoakCells.finite());
        signal("STOP", pid(rank));
        delay(MOST_PAUSE_MILLIS);
        signal("CONT", pid(rank));
        succeeds(cell);
        yield OptionalDouble.empty();
      }
      case KILL -> {
        var cell = begun(SoakCells.endless(random, rank));
        delay(MOST_DELAY_MILLIS);
        long start = System.nanoTime();
        signal("KILL", pid(rank));
        yield named(cell, start, List.of("rank " + rank));
      }
      case KILL_IDLE -> {
        long start = System.nanoTime();
        signal("KILL", pid(rank));
        gone(List.of(pid(rank)));
        yield named(begin("1 + 1", Optional.empty()), start, List.of("rank " + rank));
      }
      case EXIT -> {
        long start = System.nanoTime();
        var cell = begin(SoakCells.exit(random, rank), Optional.empty());
        yield named(cell, start, List.of("rank " + rank));
      }
      case FREEZE -> freeze(rank);
      case FREEZE_AND_INTERRUPT -> {
        var cell = begun(SoakCells.quiet(random, rank));
        try {
          signal("STOP", pid(rank));
          delay(MOST_DELAY_MILLIS);
          long start = System.nanoTime();
          victim.interrupt();
          yield named(cell, start, List.of("rank " + rank));
        } finally {
          signal("CONT", pid(rank));
        }
      }
      case RESTART -> {
        var before = pids;
        succeeds(begin("%restart", Optional.empty()));
        gone(before);
        yield OptionalDouble.empty();
      }
      case FRONT -> {
        var before = pids;
        var _ = begun(SoakCells.quiet(random, rank));
        signal("KILL", victim.front());
        long start = System.nanoTime();
        gone(before);
        double seconds = (System.nanoTime() - start) / NANOS_PER_SECOND;
        victim.renew();
        yield OptionalDouble.of(seconds);
      }
    };
  }

  private OptionalDouble freeze(int rank) throws Fault, InterruptedException {
    var cell = begun(SoakCells.quiet(random, rank));
    var output = "rank %d (pid %d) has not answered".formatted(rank, pid(rank));
    double seconds;
    try {
      long start = System.nanoTime();
      signal("STOP", pid(rank));
      if (!cell.awaitOutput(output, HANGS)) {
        throw new Fault("\"%s\" was not printed; %s".formatted(output, end(cell)));
      }
      seconds = (System.nanoTime() - start) / NANOS_PER_SECOND;
    } finally {
      signal("CONT", pid(rank));
    }
    victim.interrupt();
    var _ = named(cell, System.nanoTime(), List.of("interrupted"));
    return inTime(seconds, SILENCE.plus(namedWithin));
  }

  private static OptionalDouble inTime(double seconds, Duration limit) throws Fault {
    if (seconds > limit.toNanos() / NANOS_PER_SECOND) {
      throw new Fault(
          String.format(
              Locale.ROOT, "reported after %.1f s instead of %d s", seconds, limit.toSeconds()));
    }
    return OptionalDouble.of(seconds);
  }

  private VictimCell begin(String code, Optional<Duration> limit) {
    if (!code.equals(SoakCells.HEALTH)) {
      last = code;
    }
    return victim.begin(code, limit);
  }

  /// Starts a cell and waits until it prints that it has begun.
  private VictimCell begun(String code) throws Fault, InterruptedException {
    var cell = begin(code, Optional.empty());
    if (!cell.awaitOutput(SoakCells.BEGUN, HANGS)) {
      throw new Fault("the cell did not begin: " + end(cell));
    }
    return cell;
  }

  private OptionalDouble named(VictimCell cell, long startNanos, List<String> says)
      throws Fault, InterruptedException {
    awaitEnd(cell);
    double seconds = (System.nanoTime() - startNanos) / NANOS_PER_SECOND;
    if (cell.succeeded()) {
      throw new Fault("the cell succeeded");
    }
    says(cell, says);
    return inTime(seconds, namedWithin);
  }

  private static void says(VictimCell cell, List<String> wanted) throws Fault {
    for (var text : wanted) {
      if (!cell.output().contains(text)) {
        throw new Fault("\"%s\" was not printed; %s".formatted(text, end(cell)));
      }
    }
  }

  private void awaitEnd(VictimCell cell) throws Fault, InterruptedException {
    if (!cell.awaitEnd(HANGS)) {
      throw new Fault(
          "the cell did not end in %d s; %s; threads are in %s"
              .formatted(HANGS.toSeconds(), end(cell), Traces.dumpThreads(victim.front())));
    }
  }

  private void succeeds(VictimCell cell) throws Fault, InterruptedException {
    awaitEnd(cell);
    if (!cell.succeeded()) {
      throw new Fault("the cell failed; " + end(cell));
    }
  }

  private static String end(VictimCell cell) {
    var output = cell.output().strip().replace('\n', '|');
    int most = 400;
    return "its output: "
        + (output.length() <= 2 * most
            ? output
            : output.substring(0, most) + " … " + output.substring(output.length() - most));
  }

  /// Checks that the session works again, after `%restart` if a rank has died.
  private void recover(Attack attack) throws Fault, InterruptedException {
    try {
      checkHealth();
    } catch (Fault e) {
      boolean expected =
          switch (attack) {
            case KILL, KILL_IDLE, EXIT, FREEZE_AND_INTERRUPT -> true;
            case INTERRUPT, TIME_LIMIT, FAILURE, FLOOD, PAUSE, FREEZE, RESTART, FRONT -> false;
          };
      if (!expected || !String.valueOf(e.getMessage()).contains("%restart")) {
        throw e;
      }
      succeeds(begin("%restart", Optional.empty()));
      checkHealth();
    }
  }

  private void checkHealth() throws Fault, InterruptedException {
    var cell = begin(SoakCells.HEALTH, Optional.empty());
    succeeds(cell);
    var output = PIDS.matcher(cell.output());
    if (!output.find()) {
      throw new Fault("the ranks did not print their process ids; " + end(cell));
    }
    var found = Pattern.compile(", ").splitAsStream(output.group(1)).map(Long::valueOf).toList();
    if (found.size() != ranks || new HashSet<>(found).size() != ranks) {
      throw new Fault("%d ranks must answer but these did: %s".formatted(ranks, found));
    }
    pids = found;
  }

  /// Checks that the front's children are exactly the ranks that answered.
  private void checkProcesses() throws Fault, InterruptedException {
    var wanted = Set.copyOf(pids);
    long end = System.nanoTime() + namedWithin.toNanos();
    while (!Set.copyOf(Traces.ranks(victim.front())).equals(wanted)) {
      if (System.nanoTime() - end > 0) {
        throw new Fault(
            "the ranks are %s but the processes %s".formatted(pids, Traces.ranks(victim.front())));
      }
      Thread.sleep(POLL);
    }
  }

  private void gone(List<Long> processes) throws Fault, InterruptedException {
    long end = System.nanoTime() + namedWithin.toNanos();
    while (processes.stream().anyMatch(Traces::lives)) {
      if (System.nanoTime() - end > 0) {
        throw new Fault("some of the processes %s are still alive".formatted(processes));
      }
      Thread.sleep(POLL);
    }
  }

  private long pid(int rank) {
    return pids.get(rank);
  }

  private void delay(int mostMillis) throws InterruptedException {
    Thread.sleep(random.nextInt(mostMillis));
  }

  /// Continues all ranks that soaks of this process have frozen.
  static void thaw() {
    try {
      for (long pid : FROZEN) {
        signal("CONT", pid);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /// Sends a signal; a process that has ended meanwhile is not an error.
  private static void signal(String name, long pid) throws InterruptedException {
    if (name.equals("STOP")) {
      FROZEN.add(pid);
    } else {
      FROZEN.remove(pid);
    }
    try {
      var _ =
          new ProcessBuilder("kill", "-" + name, Long.toString(pid))
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start()
              .waitFor();
    } catch (IOException e) {
      throw new IllegalStateException("there is no kill command", e);
    }
  }
}
