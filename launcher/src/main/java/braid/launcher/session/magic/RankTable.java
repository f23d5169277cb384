package braid.launcher.session.magic;

import braid.internal.report.value.Grid;
import braid.launcher.machine.BackendChoice;
import braid.launcher.ranks.RankProcess;
import braid.model.MimeBundle;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/// `%ranks`: identity and state of each rank. Ranks that answer report their current state; a
/// frozen one is shown with its last state, without waiting.
public final class RankTable {
  /// Time for ranks to answer; after that their last state is shown.
  private static final Duration PATIENCE = Duration.ofMillis(300);

  private static final Path HOST_NAME = Path.of("/proc/sys/kernel/hostname");

  private RankTable() {}

  public static MimeBundle of(List<RankProcess> ranks, BackendChoice backend) {
    refresh(ranks);
    var grid =
        Grid.of("rank", "pid", "host", "device", "state", "memory", "heartbeat", "waits for")
            .rightAligned(0, 1, 5, 6);
    var host = host();
    for (var rank : ranks) {
      var beat = rank.heartbeat();
      var waits = beat.map(b -> b.pong().waits()).orElse(List.of());
      grid.row(
          Integer.toString(rank.rank()),
          Long.toString(rank.pid()),
          rank.host().isEmpty() ? host : rank.host(),
          backend.device(rank.rank()),
          state(rank, waits),
          beat.map(b -> "%d MiB".formatted(b.pong().residentBytes() >> 20)).orElse("?"),
          beat.map(RankTable::ago).orElse("none yet"),
          String.join("; ", waits));
    }
    return grid.note("backend " + backend).bundle();
  }

  private static void refresh(List<RankProcess> ranks) {
    var all =
        ranks.stream()
            .filter(rank -> !rank.isFrozen())
            .map(RankProcess::delivery)
            .toArray(CompletableFuture[]::new);
    CompletableFuture.allOf(all)
        .completeOnTimeout(null, PATIENCE.toMillis(), TimeUnit.MILLISECONDS)
        .join();
  }

  private static String state(RankProcess rank, List<String> waits) {
    var death = rank.death();
    if (death.isPresent()) {
      return "dead: it " + death.get().cause();
    }
    if (rank.isFrozen()) {
      return "frozen: " + (rank.isBusy() ? "busy" : "idle");
    }
    return !waits.isEmpty() ? "waiting" : rank.isBusy() ? "busy" : "idle";
  }

  private static String host() {
    try {
      return Files.readString(HOST_NAME).strip();
    } catch (IOException e) {
      return "?"; // not readable
    }
  }

  private static String ago(RankProcess.Heartbeat beat) {
    return String.format(
        Locale.ROOT, "%.1f s ago", (System.nanoTime() - beat.receivedNanos()) / 1e9);
  }
}
