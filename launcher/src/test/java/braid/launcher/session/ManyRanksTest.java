package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.launcher.hosts.ProtocolRanks;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// More ranks than strangers may have connections, all of which join at once.
class ManyRanksTest {
  private static final int RANKS = 48;

  @Test
  void ranksThatJoinTogetherRunCells(@TempDir Path home) throws Exception {
    var agents = new Agents(home, RANKS);
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      var serving =
          threads.submit(
              () -> {
                new ProtocolRanks(agents.key(), RANKS, Agents.VERSION).run();
                return true;
              });
      try (var ranks = agents.ranks(Duration.ofSeconds(60));
          var session =
              Session.start(
                  new SessionOptions(RANKS, BackendKind.HOST, Optional.empty(), home)
                      .starter(ranks))) {
        assertThat(session.run(new Cell("the cell", "int a = 1;"), new Recorded()).failure())
            .isEmpty();
      }
      assertThat(serving.get(60, TimeUnit.SECONDS)).isTrue();
    }
  }
}
