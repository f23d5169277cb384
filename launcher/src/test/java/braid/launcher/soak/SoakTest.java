package braid.launcher.soak;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.Sweep;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Runs attacks on a headless session; `braid soak` runs for longer, and under Jupyter too.
class SoakTest {
  private static final int RANKS = 2;

  /// Only a session that hangs takes that long; `braid soak` limits it to 5 s.
  private static final Duration GENEROUS = Duration.ofSeconds(60);

  @TempDir Path home;

  private HeadlessVictim session() {
    return new HeadlessVictim(new SessionOptions(RANKS, BackendKind.HOST, Optional.empty(), home));
  }

  /// Attacks possible on a headless session.
  private static List<Attack> attacks() {
    var attacks = new ArrayList<>(List.of(Attack.values()));
    attacks.remove(Attack.FRONT);
    return attacks;
  }

  @Test
  void everyAttackIsNamedAndTheSessionWorksAfterIt() throws Exception {
    var drawn = Sweep.oneOf(3, attacks());
    var events = new ArrayList<Event>();
    try (var victim = session()) {
      var soak = new Soak(victim, RANKS, 1, GENEROUS, events::add);
      soak.begin();
      for (var attack : drawn) {
        soak.one(attack);
      }
    }
    assertThat(events).extracting(Event::attack).isEqualTo(drawn);
    assertThat(events).allSatisfy(event -> assertThat(event.fault()).isEmpty());
  }

  /// Checks that a soak detects a violated condition.
  @Test
  void aFailureThatIsNotToldIsAFault() throws Exception {
    var events = new ArrayList<Event>();
    try (var victim = new Silent(session())) {
      var soak = new Soak(victim, RANKS, 1, GENEROUS, events::add);
      soak.begin();
      soak.one(Attack.FAILURE);
    }
    assertThat(events).hasSize(1);
    assertThat(events.getFirst().fault().orElseThrow()).startsWith("the cell succeeded");
  }

  /// A session in which the failing cell is never run.
  private record Silent(Victim victim) implements Victim {
    @Override
    public String name() {
      return victim.name();
    }

    @Override
    public long front() {
      return victim.front();
    }

    @Override
    public VictimCell begin(String code, Optional<Duration> limit) {
      return victim.begin(code.equals(SoakCells.HEALTH) ? code : "1 + 1", limit);
    }

    @Override
    public boolean hasLimits() {
      return victim.hasLimits();
    }

    @Override
    public void interrupt() {
      victim.interrupt();
    }

    @Override
    public void renew() {
      victim.renew();
    }

    @Override
    public void close() {
      victim.close();
    }
  }

  @Test
  void everyAttackIsDrawn() {
    assertThat(IntStream.range(0, Attack.weights()).mapToObj(Attack::at).distinct())
        .containsExactly(Attack.values());
  }
}
