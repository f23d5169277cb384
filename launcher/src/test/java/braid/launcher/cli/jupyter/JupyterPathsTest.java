package braid.launcher.cli.jupyter;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cli.home.Env;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JupyterPathsTest {
  private static JupyterPaths with(Map<String, String> variables) {
    return new JupyterPaths(new Env(variables));
  }

  @Test
  void theUsersDirectoryIsTheOneOfJupyter() {
    assertThat(with(Map.of("HOME", "/h")).userData()).isEqualTo(Path.of("/h/.local/share/jupyter"));
    assertThat(with(Map.of("HOME", "/h", "XDG_DATA_HOME", "/x")).userData())
        .isEqualTo(Path.of("/x/jupyter"));
    assertThat(with(Map.of("XDG_DATA_HOME", "/x", "JUPYTER_DATA_DIR", "/j")).userData())
        .isEqualTo(Path.of("/j"));
    assertThat(with(Map.of("HOME", "/h", "XDG_DATA_HOME", "")).userData())
        .as("set to nothing is not set")
        .isEqualTo(Path.of("/h/.local/share/jupyter"));
  }

  @Test
  void looksWhereJupyterLooksAndInThatOrder() {
    assertThat(with(Map.of("HOME", "/h", "JUPYTER_PATH", "/a:/b:/a")).data())
        .containsExactly(
            Path.of("/a"),
            Path.of("/b"),
            Path.of("/h/.local/share/jupyter"),
            Path.of("/usr/local/share/jupyter"),
            Path.of("/usr/share/jupyter"));
  }

  /// Linux takes 107 bytes.
  @Test
  void longPathsHaveNoRoomForSockets() {
    assertThat(with(Map.of("HOME", "/home/somebody")).hasRoomForSockets()).isTrue();
    assertThat(with(Map.of("HOME", "/" + "h".repeat(60))).hasRoomForSockets()).isFalse();
    int most = 107 - "/kernel-00000000-0000-0000-0000-000000000000-ipc-1".length();
    for (int length : new int[] {most, most + 1}) {
      var runtime = "/" + "r".repeat(length - 1);
      assertThat(with(Map.of("JUPYTER_RUNTIME_DIR", runtime)).hasRoomForSockets())
          .isEqualTo(length == most);
    }
  }
}
