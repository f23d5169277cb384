package braid.launcher.wire;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.MimeBundle;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class WireTest {
  static List<ToRank> toRank() {
    return List.of(
        new ToRank.Invoke("REPL.$JShell$1", "do_it$", true, 7),
        new ToRank.IdleQuery(3),
        new ToRank.Departed(8, List.of(0, 2)),
        new ToRank.VarValue("a", "b"),
        new ToRank.AddToClasspath("/tmp/ü.jar"),
        new ToRank.Resume(7),
        new ToRank.Mark(1L << 40),
        new ToRank.Ping(3),
        new ToRank.Interrupt(),
        new ToRank.Release("rank 2 failed"),
        new ToRank.Input("line", false),
        new ToRank.Exit());
  }

  static List<FromRank> fromRank() {
    return List.of(
        new FromRank.Done(),
        new FromRank.Value(MimeBundle.text("42").with(MimeBundle.HTML, "<b>42</b>")),
        new FromRank.Display(MimeBundle.text(""), "id", true),
        new FromRank.Published(MimeBundle.text("x")),
        new FromRank.InputRequest("?"),
        new FromRank.Waiting(5),
        new FromRank.IdleAnswer(6, true),
        new FromRank.Pong(1, 2, 3, List.of("all-gather `x`, chunk 3")));
  }

  @ParameterizedTest
  @MethodSource("toRank")
  void messagesToRanksComeBackAsTheyWere(ToRank message) throws IOException {
    var bytes = new ByteArrayOutputStream();
    message.write(new DataOutputStream(bytes));
    assertThat(ToRank.read(in(bytes.toByteArray()))).isEqualTo(message);
  }

  @ParameterizedTest
  @MethodSource("fromRank")
  void messagesFromRanksComeBackAsTheyWere(FromRank message) throws IOException {
    var bytes = new ByteArrayOutputStream();
    message.write(new DataOutputStream(bytes));
    assertThat(FromRank.read(in(bytes.toByteArray()))).isEqualTo(message);
  }

  @Test
  void failuresKeepEveryCauseWithItsClassMessageAndStack() throws IOException {
    var thrown = new IllegalStateException("a", new IOException("b"));
    var bytes = new ByteArrayOutputStream();
    new FromRank.Failed(RankFailure.of(RankFailure.Cause.THROWN, -1, thrown))
        .write(new DataOutputStream(bytes));
    var chain = ((FromRank.Failed) FromRank.read(in(bytes.toByteArray()))).failure().chain();
    assertThat(chain)
        .extracting(RankFailure.Thrown::toString)
        .containsExactly("java.lang.IllegalStateException: a", "java.io.IOException: b");
    var frame = chain.getFirst().stack().getFirst();
    assertThat(frame.getMethodName()).isEqualTo(thrown.getStackTrace()[0].getMethodName());
    assertThat(frame.getLineNumber()).isEqualTo(thrown.getStackTrace()[0].getLineNumber());
  }

  @Test
  void classesComeBackByteForByte() throws IOException {
    var bytes = new ByteArrayOutputStream();
    new ToRank.Load(List.of(new ToRank.ClassBytes("A", new byte[] {1, 2, 3})))
        .write(new DataOutputStream(bytes));
    var load = (ToRank.Load) ToRank.read(in(bytes.toByteArray()));
    assertThat(load.classes().getFirst().name()).isEqualTo("A");
    assertThat(load.classes().getFirst().bytes()).containsExactly(1, 2, 3);
  }

  @Test
  void garbageEndsInAnExceptionNotInMemoryOrAHang() {
    var random = new Random(20261);
    for (int i = 0; i < 20_000; i++) {
      var bytes = new byte[random.nextInt(64)];
      random.nextBytes(bytes);
      try {
        ToRank.read(in(bytes));
      } catch (EOFException e) {
        assertThat(e).isNotNull();
      } catch (IOException | RuntimeException e) {
        assertThat(e.getMessage()).isNotNull();
      }
    }
  }

  private static DataInputStream in(byte[] bytes) {
    return new DataInputStream(new ByteArrayInputStream(bytes));
  }
}
