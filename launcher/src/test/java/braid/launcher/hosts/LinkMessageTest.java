package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.ranks.ProcessState;
import braid.launcher.ranks.RankKind;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class LinkMessageTest {
  static List<LinkMessage> messages() {
    return List.of(
        new LinkMessage.Join("1.0", "h1", 3, 8, 4711),
        new LinkMessage.Connect(3, 2, LinkMessage.End.STORE),
        new LinkMessage.Answered("rank 3 is here"),
        new LinkMessage.Start(
            2, 4, 6, RankKind.GPU, "token", Map.of("RANK", "3", "B", "ü"), Map.of("C", "")),
        new LinkMessage.Started(2, 4712),
        new LinkMessage.Exited(2, 137, ""),
        new LinkMessage.Kill(2),
        new LinkMessage.Data(3, new byte[] {1, -1}),
        new LinkMessage.Allow(3, 1 << 17),
        new LinkMessage.Close(3),
        new LinkMessage.Beat(9),
        new LinkMessage.Alive(9, new ProcessState('R', 12)),
        new LinkMessage.Over());
  }

  @ParameterizedTest
  @MethodSource("messages")
  void messagesComeBackAsTheyWere(LinkMessage message) throws IOException {
    var bytes = new ByteArrayOutputStream();
    message.write(new DataOutputStream(bytes));
    assertThat(read(bytes.toByteArray())).usingRecursiveComparison().isEqualTo(message);
  }

  private static LinkMessage read(byte[] bytes) throws IOException {
    return LinkMessage.read(new DataInputStream(new ByteArrayInputStream(bytes)));
  }

  @Test
  void garbageEndsInAnIoException() {
    var random = new Random(20303);
    int refused = 0;
    for (int i = 0; i < 20_000; i++) {
      var bytes = new byte[random.nextInt(64)];
      random.nextBytes(bytes);
      try {
        assertThat(read(bytes)).isNotNull();
      } catch (IOException e) {
        refused++;
      }
    }
    assertThat(refused).isGreaterThan(10_000);
  }
}
