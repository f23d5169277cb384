package braid.natives.kernels;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KernelCacheTest {
  private static final String ARCHITECTURE = "sm_90a";

  @TempDir private Path folder;
  private KernelCompiler compiler;
  private final List<String> warnings = new ArrayList<>();

  @BeforeEach
  void open() {
    compiler = Nvrtc.orSkip();
  }

  private static KernelSources sources(String kernel) {
    return new KernelSources(
        "tiny.cu",
        "extern \"C\" __global__ void %s(int* to) { *to = 1; }".formatted(kernel),
        new LinkedHashMap<>());
  }

  private byte[] compiled(String kernel, Path folder) {
    return new KernelCache(folder, warnings::add).compiled(sources(kernel), compiler, ARCHITECTURE);
  }

  private Path file(String kernel) {
    return new KernelCache(folder, warnings::add).file(sources(kernel), compiler, ARCHITECTURE);
  }

  @Test
  void compiledKernelsAreKept() throws IOException {
    var first = compiled("one", folder);
    assertThat(folder.toFile().list()).hasSize(1);
    assertThat(file("one").getFileName().toString()).matches("[0-9a-f]{64}-sm_90a\\.cubin");
    // The file's content is returned although another program wrote it, so nothing was compiled.
    compiled("two", folder);
    Files.copy(file("two"), file("one"), StandardCopyOption.REPLACE_EXISTING);
    assertThat(compiled("one", folder)).isEqualTo(compiled("two", folder)).isNotEqualTo(first);
    assertThat(warnings).isEmpty();
  }

  @Test
  void aDamagedFileIsCompiledAgain() throws IOException {
    var first = compiled("one", folder);
    var file = file("one");
    var damaged = Files.readAllBytes(file);
    damaged[damaged.length / 2] ^= 1;
    Files.write(file, damaged);
    assertThat(compiled("one", folder)).isEqualTo(first);
    Files.write(file, new byte[] {1, 2, 3});
    assertThat(compiled("one", folder)).isEqualTo(first);
    assertThat(warnings)
        .containsExactly("compiled kernels in " + file + " are damaged; they are compiled again");
    assertThat(compiled("one", folder)).isEqualTo(first);
    assertThat(folder.toFile().list()).hasSize(1);
  }

  @Test
  void compilesEachTimeWhereNothingCanBeKept() throws IOException {
    var file = Files.writeString(folder.resolve("file"), "");
    var first = compiled("one", file);
    assertThat(compiled("one", file)).isEqualTo(first);
    assertThat(warnings).hasSize(1);
    assertThat(warnings.getFirst())
        .startsWith("compiled kernels cannot be kept in " + file)
        .endsWith("and are compiled at every start; make it writable");
  }
}
