package braid.launcher.kernel.channels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.fail;

import braid.launcher.fuzz.Mutations;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.List;
import org.dflib.jjava.jupyter.messages.HMACGenerator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/// Checks that randomly corrupted frames yield a message or a `MalformedMessage`, as do frames with
/// a valid signature and unexpected JSON.
@Execution(ExecutionMode.CONCURRENT)
class MessageFuzzTest {
  private static final int EACH = 2_000;

  private static final HMACGenerator SIGNER = signer();
  private static final List<String> PARTS =
      List.of(
          "{\"msg_id\": \"a1\", \"msg_type\": \"execute_request\", \"session\": \"s\", \"username\":"
              + " \"u\", \"date\": \"2026-01-01T00:00:00Z\", \"version\": \"5.3\"}",
          "{}",
          "{\"deletedCells\": [], \"n\": 1.5}",
          "{\"code\": \"1 + 1\", \"silent\": false, \"user_expressions\": {\"x\": \"1\"},"
              + " \"allow_stdin\": true}");

  private final MessageCodec codec = codec();

  private static HMACGenerator signer() {
    try {
      return new HMACGenerator("HmacSHA256", "key");
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static MessageCodec codec() {
    try {
      return new MessageCodec("hmac-sha256", "key");
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static List<byte[]> signed(List<String> parts) {
    var bytes = parts.stream().map(part -> part.getBytes(StandardCharsets.UTF_8)).toList();
    var frames = new ArrayList<byte[]>();
    frames.add(new byte[] {1, 2, 3});
    frames.add("<IDS|MSG>".getBytes(StandardCharsets.UTF_8));
    frames.add(
        SIGNER.calculateSignature(bytes.toArray(byte[][]::new)).getBytes(StandardCharsets.UTF_8));
    frames.addAll(bytes);
    return frames;
  }

  private boolean decodes(List<byte[]> frames, int number) {
    try {
      var message = codec.decode(frames);
      assertThat(message.id()).isNotEmpty();
      assertThat(message.type()).isNotEmpty();
      assertThat(codec.encode(Message.reply(message, "reply", message.content()))).isNotEmpty();
      return true;
    } catch (MalformedMessage e) {
      assertThat(e.getMessage()).isNotBlank().doesNotContain("\n");
      return false;
    } catch (RuntimeException | Error e) {
      return fail("-Dbraid.seed=" + Mutations.SEED + ", number " + number, e);
    }
  }

  @Test
  void brokenFramesAreRefused() {
    var mutations = new Mutations(Mutations.SEED);
    int decoded = 0;
    for (int i = 0; i < EACH; i++) {
      decoded += decodes(mutations.frames(signed(PARTS)), i) ? 1 : 0;
    }
    assertThat(decoded).isBetween(1, EACH - 1);
  }

  @Test
  void signedNonsenseIsAnswered() {
    var mutations = new Mutations(Mutations.SEED + 1);
    int decoded = 0;
    for (int i = 0; i < EACH; i++) {
      int broken = i % PARTS.size();
      var parts = new ArrayList<>(PARTS);
      parts.set(
          broken,
          i % 8 < PARTS.size()
              ? mutations.text(PARTS.get(broken))
              : mutations.json(PARTS.get(broken)));
      decoded += decodes(signed(parts), i) ? 1 : 0;
    }
    assertThat(decoded).isBetween(1, EACH - 1);
  }
}
