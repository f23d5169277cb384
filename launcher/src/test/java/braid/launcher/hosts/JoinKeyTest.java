package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JoinKeyTest {
  private static final String TOKEN = "0123456789abcdef0123456789abcdef";
  private static final String HASH = "ab".repeat(32);

  @ParameterizedTest
  @ValueSource(strings = {"10.88.0.254:7077", "front.example-1.svc:1", "[fd00::1]:65535"})
  void keysComeBackAsTheyWere(String address) {
    for (var text : new String[] {address + "/" + TOKEN, address + "/" + TOKEN + "/" + HASH}) {
      var key = JoinKey.parse("FILE", text + "\n");
      assertThat(key.text()).isEqualTo(text);
      assertThat(key).hasToString(address);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "front",
        "front:7077",
        "front:0/" + TOKEN,
        "front:65536/" + TOKEN,
        "front:7077/short",
        "fro nt:7077/" + TOKEN,
        "front:7077/" + TOKEN + "/12",
        "::1:7077/" + TOKEN
      })
  void otherTextsAreRefusedAndNotRepeated(String text) {
    assertThatThrownBy(() -> JoinKey.parse("BRAID_JOIN", text))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("BRAID_JOIN must be ADDRESS:PORT/TOKEN")
        .hasMessageNotContaining(TOKEN);
  }

  @Test
  void theFileIsForItsOwnerOnly(@TempDir Path folder) throws Exception {
    var file = folder.resolve("braid.join");
    var key = new JoinKey("127.0.0.1", 7077, TOKEN, Optional.of(HASH));
    key.write(file);
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
        .isEqualTo("rw-------");
    assertThat(JoinKey.read(file)).isEqualTo(key);
    assertThat(folder).isDirectoryContaining(each -> each.equals(file));
    assertThat(folder.toFile().list()).hasSize(1);

    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r-----"));
    assertThatThrownBy(() -> JoinKey.read(file))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("must be accessible to its owner only but has mode rw-r-----")
        .hasMessageContaining("chmod 600");
  }
}
