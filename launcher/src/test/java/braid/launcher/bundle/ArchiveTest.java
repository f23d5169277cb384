package braid.launcher.bundle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ArchiveTest {
  @TempDir Path directory;
  private Path folder;
  private Path file;

  @BeforeEach
  void fill() throws IOException {
    folder = Files.createDirectory(directory.resolve("folder"));
    Files.write(folder.resolve("large"), bytes(3 << 20));
    Files.write(folder.resolve("small"), bytes(1 << 10));
    file = directory.resolve("a.tar.xz");
  }

  private static byte[] bytes(int count) {
    var bytes = new byte[count];
    new Random(1).nextBytes(bytes);
    return bytes;
  }

  @Test
  void anArchiveHoldsTheFolder() throws Exception {
    Files.writeString(file, "an older one");
    long size = new Archive("-0", 4 << 20).pack(folder, file);
    assertThat(file).hasSize(size);
    var unpacked = Files.createDirectory(directory.resolve("unpacked"));
    var tar = new ProcessBuilder("tar", "-C", unpacked.toString(), "-xf", file.toString());
    assertThat(tar.inheritIO().start().waitFor()).isZero();
    assertThat(unpacked.resolve("folder/large")).hasSameBinaryContentAs(folder.resolve("large"));
  }

  @Test
  void isNotMadeWhereItWouldBeTooLarge() {
    assertThatThrownBy(() -> new Archive("-0", 1 << 20).pack(folder, file))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "a bundle must be at most 1.0 MiB but is 3.0 MiB; leave something out of its largest"
                + " files: large 3.0 MiB, small 0.0 MiB");
    assertThat(directory.toFile().list()).containsExactly("folder");
  }

  @Test
  void anErrorQuotesTheOutputOfTheProgram() {
    assertThatThrownBy(() -> new Archive("--no-such-effort", 1 << 20).pack(folder, file))
        .isInstanceOf(IOException.class)
        .hasMessageStartingWith("tar and xz failed")
        .hasMessageContaining("no-such-effort");
    assertThat(directory.toFile().list()).containsExactly("folder");
  }
}
