package braid.launcher.cli.jupyter;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JupyterFolderTest {
  @TempDir Path temporary;

  @Test
  void onlyFoldersOfDeadProcessesAreRemoved() throws Exception {
    var dead = Files.createDirectories(temporary.resolve("braid-jupyter17"));
    Files.createFile(dead.resolve("lock"));
    Files.createDirectories(dead.resolve("kernels/braid"));
    Files.createFile(dead.resolve("kernels/braid/kernel.json"));
    var unknown = Files.createDirectory(temporary.resolve("braid-jupyter18"));
    var link = Files.createSymbolicLink(temporary.resolve("braid-jupyter19"), unknown);
    var others = Files.createDirectory(temporary.resolve("other"));
    try (var living = JupyterFolder.create(temporary)) {
      assertThat(dead).doesNotExist();
      Path closed;
      try (var second = JupyterFolder.create(temporary)) {
        closed = second.path();
        assertThat(closed).isDirectory().isNotEqualTo(living.path());
        assertThat(living.path()).isDirectory();
        Files.createDirectories(closed.resolve("kernels/braid"));
      }
      assertThat(closed).doesNotExist();
    }
    try (var left = Files.list(temporary)) {
      assertThat(left).containsExactlyInAnyOrder(unknown, link, others);
    }
  }

  /// Another `braid lab`.
  static final class Other {
    private Other() {}

    public static void main(String[] arguments) throws Exception {
      JupyterFolder.create(Path.of(arguments[0])).close();
    }
  }

  @Test
  void foldersOfLivingProcessesStay() throws Exception {
    try (var living = JupyterFolder.create(temporary)) {
      var other =
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                  "-cp",
                  System.getProperty("java.class.path"),
                  Other.class.getName(),
                  temporary.toString())
              .inheritIO()
              .start();
      assertThat(other.waitFor()).isZero();
      assertThat(living.path()).isDirectory();
    }
  }
}
