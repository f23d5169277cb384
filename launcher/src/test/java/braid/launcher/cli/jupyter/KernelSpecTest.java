package braid.launcher.cli.jupyter;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.launcher.cli.Ran;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KernelSpecTest {
  @TempDir Path directory;

  private Path kernel() {
    return directory.resolve("share/jupyter/kernels/braid");
  }

  private static KernelSpec spec(Path directory) {
    return new KernelSpec(directory, "Braid", List.of("braid", "kernel", "start"));
  }

  private Path linkedFolder() throws IOException {
    var mine = directory.resolve("mine");
    spec(mine).write();
    Files.writeString(mine.resolve("notes.txt"), "kept");
    Files.createDirectories(kernel().getParent());
    Files.createSymbolicLink(kernel(), mine);
    return mine;
  }

  @Test
  void installReplacesALinkAndLeavesItsFolder() throws IOException {
    var mine = linkedFolder();
    spec(kernel()).write();
    assertThat(kernel()).isDirectory();
    assertThat(Files.isSymbolicLink(kernel())).isFalse();
    assertThat(mine.resolve("notes.txt")).hasContent("kept");
    assertThat(KernelSpec.read(kernel())).contains(spec(kernel()));
  }

  @Test
  void removeTakesOnlyTheLink() throws IOException {
    var mine = linkedFolder();
    var ran = Ran.here("kernel", "remove", "--prefix", directory.toString());
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(Files.exists(kernel(), java.nio.file.LinkOption.NOFOLLOW_LINKS)).isFalse();
    assertThat(mine.resolve("notes.txt")).hasContent("kept");
  }

  @Test
  void danglingLinksAndLoopsAreReplaced() throws IOException {
    Files.createDirectories(kernel().getParent());
    for (var target : List.of(directory.resolve("nothing"), kernel())) {
      Files.createSymbolicLink(kernel(), target);
      spec(kernel()).write();
      assertThat(KernelSpec.read(kernel())).isPresent();
      spec(kernel()).remove();
    }
  }

  @Test
  void aLinkToAnotherKernelIsRefused() throws IOException {
    var other = Files.createDirectories(directory.resolve("other"));
    Files.writeString(other.resolve("kernel.json"), "{}");
    Files.createDirectories(kernel().getParent());
    Files.createSymbolicLink(kernel(), other);
    assertThatThrownBy(() -> spec(kernel()).write())
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("holds another kernel");
    assertThat(other.resolve("kernel.json")).hasContent("{}");
  }

  @Test
  void aBrokenCommandIsReadAsText() throws IOException {
    Files.createDirectories(kernel());
    Files.writeString(
        kernel().resolve("kernel.json"),
        """
        {"argv": [1, {"a": []}, null, ["b"]], "display_name": "x\\u001b[2J", "metadata": {"braid": {}}}
        """);
    assertThat(KernelSpec.read(kernel()).orElseThrow().command())
        .containsExactly("1", "{\"a\":[]}", "null", "[\"b\"]");
    Files.write(kernel().resolve("kernel.json"), new byte[] {(byte) 0xff, '{'});
    assertThat(KernelSpec.read(kernel())).isEmpty();
  }
}
