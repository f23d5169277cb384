package braid.launcher.ranks;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class DeathTest {
  @Test
  void ranksThatDiedAlikeAreOneSentence() {
    assertThat(
            Death.together(
                List.of(
                    new Death(0, 11, 137),
                    new Death(1, 12, 137),
                    new Death(2, 13, 137),
                    new Death(3, 14, 137))))
        .isEqualTo("ranks 0, 1, 2, 3 (pids 11, 12, 13, 14) were killed by SIGKILL (signal 9)");
    assertThat(
            Death.together(
                List.of(new Death(0, 11, 7), new Death(1, 12, 137), new Death(3, 14, 7))))
        .isEqualTo(
            "ranks 0, 3 (pids 11, 14) exited with code 7; rank 1 (pid 12) was killed by SIGKILL (signal 9)");
  }
}
