package braid.launcher.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.rank.Env;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CacheCheckTest {
  @TempDir private Path folder;

  @Test
  void theCheckNamesTheFolderAndHowToClearIt() throws IOException {
    var cache = folder.resolve("cache");
    assertThat(CacheCheck.of(cache)).isEqualTo(Check.ok("cache", "cache", cache + ", empty"));
    var kernels = Files.createDirectories(cache.resolve(Env.KERNELS));
    var algorithms = Files.createDirectories(cache.resolve(Env.ALGORITHMS).resolve("gpu"));
    Files.writeString(kernels.resolve("a.cubin"), "");
    Files.writeString(algorithms.resolve("a.txt"), "");
    Files.writeString(algorithms.resolve("b.txt"), "");
    assertThat(CacheCheck.of(cache).value())
        .isEqualTo(
            "%s: 1 of compiled kernels, 2 of chosen GEMM algorithms; to recreate them: rm -r %s/{kernels,algorithms}"
                .formatted(cache, cache));
  }

  @Test
  void aFolderThatCannotBeMadeCostsTimeAndNoMore() throws IOException {
    var file = Files.writeString(folder.resolve("file"), "");
    var check = CacheCheck.of(file.resolve("cache"));
    assertThat(check.state()).isEqualTo(Check.State.ABSENT);
    assertThat(check.value()).startsWith(file.resolve("cache") + " cannot be written: kernels are");
    assertThat(check.remedy()).contains("make it writable, or set BRAID_CACHE to another folder");
  }
}
