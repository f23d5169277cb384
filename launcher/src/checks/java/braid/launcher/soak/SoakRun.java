package braid.launcher.soak;

import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import braid.natives.WholeFolder;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/// Soaks of several sessions in parallel, and the check for leaks on the machine.
///
/// @param options ranks and backend of the sessions
/// @param sessions those of [#SESSIONS] to attack
/// @param kernel the command by which Jupyter starts a kernel
/// @param progress receives progress lines
public record SoakRun(
    SessionOptions options,
    int seconds,
    long seed,
    List<String> sessions,
    List<String> kernel,
    Consumer<String> progress) {
  private static final String HEADLESS = "headless";
  private static final String JUPYTER = "jupyter";

  /// Kinds of sessions.
  public static final List<String> SESSIONS = List.of(HEADLESS, JUPYTER);

  /// Descriptors and threads that a front may gain by lazy initialization.
  private static final int MOST_GROWTH = 16;

  /// Divisor of the total time for the warm-up.
  private static final int WARM_UP = 10;

  private static final int PROGRESS_STEP = 50;

  /// Attacks the sessions and prints the results. Returns true if all guarantees were kept.
  public boolean run(PrintWriter out) throws IOException, InterruptedException {
    var report = new SoakReport();
    var before = Traces.temporary();
    var home = Files.createTempDirectory("braid-soak");
    // After Ctrl-C a frozen rank could not notice the end of its front, and would stay.
    Runtime.getRuntime().addShutdownHook(new Thread(Soak::thaw, "soak-thaw"));
    try {
      attackAll(home, report);
    } finally {
      WholeFolder.delete(home);
    }
    var left = new TreeSet<>(Traces.temporary());
    left.removeAll(before);
    if (!left.isEmpty()) {
      report.leaked("temporary files: " + left);
    }
    var shared = Traces.shared();
    if (!shared.isEmpty()) {
      report.leaked("shared memory: " + shared);
    }
    report.print(out);
    return report.isClean();
  }

  private void attackAll(Path home, SoakReport report) throws IOException, InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    var soaks = new ArrayList<CompletableFuture<Void>>();
    for (var session : sessions) {
      // Each session has its own attacks.
      long sessionSeed = seed + SESSIONS.indexOf(session);
      victim(session, home).ifPresent(victim -> soaks.add(start(victim, sessionSeed, end, report)));
    }
    for (var soak : soaks) {
      try {
        var _ = soak.get();
      } catch (ExecutionException e) {
        throw new IOException("the soak was aborted: " + e.getCause(), e);
      }
    }
  }

  private Optional<Victim> victim(String session, Path home)
      throws IOException, InterruptedException {
    if (session.equals(HEADLESS)) {
      return Optional.of(
          new HeadlessVictim(
              new SessionOptions(options.ranks(), options.backend(), options.link(), home)));
    }
    Optional<Victim> jupyter =
        JupyterVictim.start(kernel, home.resolve("kernel.log")).map(victim -> victim);
    if (jupyter.isEmpty() && sessions.size() == 1) {
      throw new BraidException(
          "session jupyter needs a python3 with jupyter_client but none was found; apt install python3-jupyter-client, or use --only headless");
    }
    if (jupyter.isEmpty()) {
      progress.accept("no python3 has jupyter_client: headless only");
    }
    return jupyter;
  }

  private CompletableFuture<Void> start(
      Victim victim, long sessionSeed, long endNanos, SoakReport report) {
    var done = new CompletableFuture<Void>();
    Thread.ofPlatform()
        .name("soak-of-" + victim.name())
        .start(
            () -> {
              try {
                try (victim) {
                  attack(victim, sessionSeed, endNanos, report);
                }
                done.complete(null);
              } catch (Exception | Error e) {
                done.completeExceptionally(e);
              }
            });
    return done;
  }

  private void attack(Victim victim, long sessionSeed, long endNanos, SoakReport report)
      throws IOException, InterruptedException {
    var soak =
        new Soak(
            victim,
            options.ranks(),
            sessionSeed,
            Soak.NAMED_WITHIN,
            event -> onEvent(event, report));
    soak.begin();
    soak.until(System.nanoTime() + (endNanos - System.nanoTime()) / WARM_UP);
    var warm = Traces.Resources.by(victim.front());
    soak.until(endNanos);
    var end = Traces.Resources.by(victim.front());
    report.resources(victim.name(), warm, end);
    if (end.files() > warm.files() + MOST_GROWTH) {
      report.leaked(
          "descriptors of the %s front: %d, then %d"
              .formatted(victim.name(), warm.files(), end.files()));
    }
    if (end.threads() > warm.threads() + MOST_GROWTH) {
      report.leaked(
          "threads of the %s front: %d, then %d"
              .formatted(victim.name(), warm.threads(), end.threads()));
    }
  }

  private void onEvent(Event event, SoakReport report) {
    report.add(event);
    int count = report.count();
    event
        .fault()
        .ifPresent(
            fault ->
                progress.accept(
                    "event %d, %s, %s: %s"
                        .formatted(count, event.victim(), event.attack().title, fault)));
    if (count % PROGRESS_STEP == 0) {
      progress.accept("%d events".formatted(count));
    }
  }
}
