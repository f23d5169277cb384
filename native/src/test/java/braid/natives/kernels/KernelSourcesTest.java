package braid.natives.kernels;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class KernelSourcesTest {
  private static final List<KernelSources> PROGRAMS =
      List.of(KernelSources.ours(), KernelSources.attention());

  @Test
  void everyFileIsAProgramOrIncludedByOne() throws Exception {
    var folder = Objects.requireNonNull(KernelSources.class.getResource("kernels.cu"));
    var files =
        Path.of(folder.toURI())
            .resolveSibling("")
            .toFile()
            .list((_, name) -> !name.endsWith(".class"));
    var used = new TreeSet<String>();
    PROGRAMS.forEach(
        program -> {
          used.add(program.name());
          used.addAll(program.included().keySet());
        });
    assertThat(files).containsExactlyInAnyOrderElementsOf(used);
  }

  @Test
  void includesNothingElse() {
    PROGRAMS.forEach(
        program ->
            program
                .included()
                .forEach(
                    (file, text) ->
                        assertThat(text.lines().filter(line -> line.startsWith("#include")))
                            .as(file)
                            .allMatch(line -> line.equals("#include <cstring>"))));
  }
}
