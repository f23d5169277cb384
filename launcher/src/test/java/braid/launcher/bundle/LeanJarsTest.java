package braid.launcher.bundle;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.util.List;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LeanJarsTest {
  private static final LocalDateTime BUILT = LocalDateTime.of(2026, 2, 3, 4, 5, 6);

  @TempDir Path directory;

  private Path jar(String... names) throws IOException {
    var file = directory.resolve("some.jar");
    try (var jar = new ZipOutputStream(Files.newOutputStream(file))) {
      for (var name : names) {
        var entry = new ZipEntry(name);
        entry.setTimeLocal(BUILT);
        jar.putNextEntry(entry);
        jar.write(name.getBytes(StandardCharsets.UTF_8));
        jar.closeEntry();
      }
    }
    return file;
  }

  /// JavaCPP unpacks a library again if its time differs, and replaces it under running processes.
  @Test
  void nativeLibrariesKeepTheirTime() throws Exception {
    var original = jar("linux/libx.so", "linux/liby.so.0", "some/A.txt");
    LeanJars.copy(List.of(original), directory.resolve("lean"));
    try (var before = new ZipFile(original.toFile());
        var lean = new ZipFile(directory.resolve("lean/some.jar").toFile())) {
      for (var name : List.of("linux/libx.so", "linux/liby.so.0")) {
        assertThat(lean.getEntry(name).getTime()).isEqualTo(before.getEntry(name).getTime());
        assertThat(lean.getEntry(name).getSize()).isEqualTo(before.getEntry(name).getSize());
      }
      assertThat(lean.getEntry("some/A.txt").getTimeLocal()).isBefore(BUILT);
    }
  }
}
