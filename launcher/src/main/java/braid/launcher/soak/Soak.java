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

/// Attacks one session until its time is over. After each attack the failure must have been named
/// in time, the session must work, and no process may be left.
///
/// ```
/// attack ─▶ failure named? ─▶ %restart where a rank died ─▶ a pipeline verifies on all ranks ─▶ processes are the ranks'
/// ```
final class Soak {
  /// What a session promises.
  static final Duration NAMED_WITHIN = Duration.ofSeconds(5);

  /// A freeze is said only after that long without a heartbeat.
  private static final Duration SILENCE = Duration.ofSeconds(5);

  /// No cell takes longer to end; one that does hangs.
  private static final Duration HANGS = Duration.ofSeconds(40);

  private static final Duration GONE = Duration.ofSeconds(5);
  private static final Duration LOOK_AGAIN = Duration.ofMillis(20);
  private static final int MOST_DELAY_MILLIS = 300;
  private static final int MOST_PAUSE_MILLIS = 500;
  private static final double NANOS_PER_SECOND = 1e9;

  /// Processes of all soaks that are stopped just now.
  private static final Set<Long> FROZEN = ConcurrentHashMap.newKeySet();

  private static final Pattern PIDS = Pattern.compile("pids \\[([0-9, ]+)]");

  private final Victim victim;
  private final int ranks;
  private final Random random;
  private final Duration namedWithin;
  private final Consumer<Event> tell;
  private List<Long> pids = List.of();

  /// The cell of the last attack.
  private String last = "";

  /// @param namedWithin how long it may take until a failure is named
  /// @param tell hears each event
  Soak(Victim victim, int ranks, long seed, Duration namedWithin, Consumer<Event> tell) {
    this.victim = victim;
    this.ranks = ranks;
    this.random = new Random(seed);
    this.namedWithin = namedWithin;
    this.tell = tell;
  }

  /// What did not hold.
  private static final class Fault extends Exception {
    private static final long serialVersionUID = 1;

    Fault(String message) {
      super(message);
    }
  }

  /// Makes the session warm. Throws where it does not even begin.
  void begin() throws InterruptedException {
    try {
      for (int i = 0; i < 3; i++) {
        checkHealth();
      }
    } catch (Fault e) {
      throw new IllegalStateException("the session did not begin: " + e.getMessage(), e);
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
            // This process is the front of a headless session.
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
    var what = "rank " + rank;
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
    tell.accept(new Event(victim.name(), attack, what, named, fault));
  }

  /// Returns how long it took until the failure was named.
  private OptionalDouble perform(Attack attack, int rank) throws Fault, InterruptedException {
    return switch (attack) {
      case INTERRUPT -> {
        var cell = begun(Codes.endless(random, rank));
        delay(MOST_DELAY_MILLIS);
        long start = System.nanoTime();
        victim.interrupt();
        yield named(cell, start, List.of("interrupted"));
      }
      case TIME_LIMIT -> {
        int millis = 200 + random.nextInt(400);
        long start = System.nanoTime();
        var cell = begin(Codes.endless(random, rank), Optional.of(Duration.ofMillis(millis)));
        yield named(
            cell, start + TimeUnit.MILLISECONDS.toNanos(millis), List.of("must end within"));
      }
      case FAILURE -> {
        var failing = Codes.Failing.draw(random, rank, ranks);
        long start = System.nanoTime();
        yield named(begin(failing.code(), Optional.empty()), start, failing.says());
      }
      case FLOOD -> {
        var cell = begin(Codes.flood(random), Optional.empty());
        succeeds(cell);
        says(cell, List.of("flooded"));
        yield OptionalDouble.empty();
      }
      case PAUSE -> {
        var cell = begun(Codes.finite());
        signal("STOP", pid(rank));
        delay(MOST_PAUSE_MILLIS);
        signal("CONT", pid(rank));
        succeeds(cell);
        yield OptionalDouble.empty();
      }
      case KILL -> {
        var cell = begun(Codes.endless(random, rank));
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
        var cell = begin(Codes.exit(random, rank), Optional.empty());
        yield named(cell, start, List.of("rank " + rank));
      }
      case FREEZE -> freeze(rank);
      case FREEZE_AND_INTERRUPT -> {
        var cell = begun(Codes.quiet(random, rank));
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
        var _ = begun(Codes.quiet(random, rank));
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
    var cell = begun(Codes.quiet(random, rank));
    var said = "rank %d (pid %d) has not answered".formatted(rank, pid(rank));
    double seconds;
    try {
      long start = System.nanoTime();
      signal("STOP", pid(rank));
      if (!cell.awaitSaid(said, HANGS)) {
        throw new Fault("\"%s\" was not said; %s".formatted(said, end(cell)));
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
              Locale.ROOT, "named after %.1f s instead of %d s", seconds, limit.toSeconds()));
    }
    return OptionalDouble.of(seconds);
  }

  private RunningCell begin(String code, Optional<Duration> limit) {
    if (!code.equals(Codes.HEALTH)) {
      last = code;
    }
    return victim.begin(code, limit);
  }

  /// A cell that prints when it has begun.
  private RunningCell begun(String code) throws Fault, InterruptedException {
    var cell = begin(code, Optional.empty());
    if (!cell.awaitSaid(Codes.BEGUN, HANGS)) {
      throw new Fault("the cell did not begin: " + end(cell));
    }
    return cell;
  }

  private OptionalDouble named(RunningCell cell, long startNanos, List<String> says)
      throws Fault, InterruptedException {
    awaitEnd(cell);
    double seconds = (System.nanoTime() - startNanos) / NANOS_PER_SECOND;
    if (cell.succeeded()) {
      throw new Fault("the cell succeeded");
    }
    says(cell, says);
    return inTime(seconds, namedWithin);
  }

  private static void says(RunningCell cell, List<String> wanted) throws Fault {
    for (var text : wanted) {
      if (!cell.said().contains(text)) {
        throw new Fault("\"%s\" was not said; %s".formatted(text, end(cell)));
      }
    }
  }

  private void awaitEnd(RunningCell cell) throws Fault, InterruptedException {
    if (!cell.awaitEnd(HANGS)) {
      throw new Fault(
          "the cell did not end in %d s; %s; threads are in %s"
              .formatted(HANGS.toSeconds(), end(cell), Traces.keepThreads(victim.front())));
    }
  }

  private void succeeds(RunningCell cell) throws Fault, InterruptedException {
    awaitEnd(cell);
    if (!cell.succeeded()) {
      throw new Fault("the cell failed; " + end(cell));
    }
  }

  private static String end(RunningCell cell) {
    var said = cell.said().strip().replace('\n', '|');
    int most = 400;
    return "it said: "
        + (said.length() <= 2 * most
            ? said
            : said.substring(0, most) + " … " + said.substring(said.length() - most));
  }

  /// The session works again, by `%restart` where a rank has died.
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
    var cell = begin(Codes.HEALTH, Optional.empty());
    succeeds(cell);
    var said = PIDS.matcher(cell.said());
    if (!said.find()) {
      throw new Fault("the ranks did not say their processes; " + end(cell));
    }
    var found = Pattern.compile(", ").splitAsStream(said.group(1)).map(Long::valueOf).toList();
    if (found.size() != ranks || new HashSet<>(found).size() != ranks) {
      throw new Fault("%d ranks had to answer but these did: %s".formatted(ranks, found));
    }
    pids = found;
  }

  /// The front's ranks are those that answered, and no other process.
  private void checkProcesses() throws Fault, InterruptedException {
    var wanted = Set.copyOf(pids);
    long end = System.nanoTime() + GONE.toNanos();
    while (!Set.copyOf(Traces.ranks(victim.front())).equals(wanted)) {
      if (System.nanoTime() - end > 0) {
        throw new Fault(
            "the ranks are %s but the processes %s".formatted(pids, Traces.ranks(victim.front())));
      }
      Thread.sleep(LOOK_AGAIN);
    }
  }

  private static void gone(List<Long> processes) throws Fault, InterruptedException {
    long end = System.nanoTime() + GONE.toNanos();
    while (processes.stream().anyMatch(Traces::lives)) {
      if (System.nanoTime() - end > 0) {
        throw new Fault("of the processes %s some live on".formatted(processes));
      }
      Thread.sleep(LOOK_AGAIN);
    }
  }

  private long pid(int rank) {
    return pids.get(rank);
  }

  private void delay(int mostMillis) throws InterruptedException {
    Thread.sleep(random.nextInt(mostMillis));
  }

  /// Lets all ranks go on that soaks of this process have frozen.
  static void thaw() {
    try {
      for (long pid : FROZEN) {
        signal("CONT", pid);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /// A process that has ended meanwhile is no error.
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
