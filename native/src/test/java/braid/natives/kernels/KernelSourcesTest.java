package braid.natives.kernels;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Objects;
import org.junit.jupiter.api.Test;

class KernelSourcesTest {
  @Test
  void hasEveryFileThereIsAndIncludesIt() throws Exception {
    var ours = KernelSources.ours();
    var folder = Objects.requireNonNull(KernelSources.class.getResource(ours.name()));
    var files =
        Path.of(folder.toURI())
            .resolveSibling("")
            .toFile()
            .list((_, name) -> !name.endsWith(".class"));
    assertThat(files).contains(ours.name()).hasSize(ours.included().size() + 1);
    assertThat(files).containsAll(ours.included().keySet());
    ours.included()
        .keySet()
        .forEach(file -> assertThat(ours.program()).contains("#include \"" + file + "\""));
  }

  @Test
  void includesNothingElse() {
    KernelSources.ours()
        .included()
        .forEach(
            (file, text) ->
                assertThat(text.lines().filter(line -> line.startsWith("#include")))
                    .as(file)
                    .allMatch(line -> line.equals("#include <cstring>")));
  }
}
