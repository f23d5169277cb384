package braid.natives.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import braid.natives.load.Libraries.Library;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LibrarySearchTest {
  private static final String SITE = "opt/venv/lib/python3.12/site-packages";

  @TempDir private Path temporary;
  private Path root;

  @BeforeEach
  void realRoot() throws IOException {
    root = temporary.toRealPath();
  }

  private Path file(String path) throws IOException {
    var file = root.resolve(path);
    Files.createDirectories(file.getParent());
    return Files.createFile(file);
  }

  private void link(String path, String target) throws IOException {
    var link = root.resolve(path);
    Files.createDirectories(link.getParent());
    Files.createSymbolicLink(link, Path.of(target));
  }

  private void wheel(String name, String file) throws IOException {
    file(SITE + "/" + file);
    Files.writeString(
        file("%s/%s.dist-info/RECORD".formatted(SITE, name)), file + ",sha256=0,1\nother,,\n");
  }

  private LibrarySearch search(Library library) {
    return LibrarySearch.in(SearchFolders.of(root, Map.of()), library, List.of());
  }

  @Test
  void theNewestWinsWhereverItIs() throws IOException {
    file("usr/lib/x86_64-linux-gnu/libnccl.so.2.28.3");
    link("usr/lib/x86_64-linux-gnu/libnccl.so.2", "libnccl.so.2.28.3");
    wheel("nvidia_nccl_cu13-2.28.9", "nvidia/nccl/lib/libnccl.so.2");
    var search = search(Library.NCCL);
    var taken = search.take();
    assertThat(taken.file()).isEqualTo(root.resolve(SITE + "/nvidia/nccl/lib/libnccl.so.2"));
    assertThat(taken.version()).contains(new Version("2.28.9"));
    assertThat(search.why(taken)).isEqualTo("the newest of 2, in Python's packages");
    assertThat(search.rest())
        .containsExactly(
            "%s/usr/lib/x86_64-linux-gnu/libnccl.so.2 (2.28.3, in the dynamic loader's folders)"
                .formatted(root));
  }

  @Test
  void equalsGoByTheOrderOfPlaces() throws IOException {
    file("usr/local/cuda-13.0/targets/x86_64-linux/lib/libcudart.so.13");
    link("usr/local/cuda", "cuda-13.0");
    wheel("nvidia_cuda_runtime-13.0.96", "nvidia/cu13/lib/libcudart.so.13");
    var search = search(Library.CUDA_RUNTIME);
    var taken = search.take();
    assertThat(taken.source()).isEqualTo(SearchFolder.Source.TOOLKIT);
    assertThat(taken.version()).contains(new Version("13.0"));
    assertThat(search.why(taken)).isEqualTo("the first of the newest of 2, in the CUDA toolkit");
    assertThat(search.take().source()).isEqualTo(SearchFolder.Source.PYTHON);
    assertThat(search.isEmpty()).isTrue();
  }

  @Test
  void oneFileUnderTwoNamesIsOne() throws IOException {
    file("usr/local/cuda-13.0/lib64/libnvrtc.so.13");
    link("usr/local/cuda", "cuda-13.0");
    var places =
        SearchFolders.of(
            root,
            Map.of("LD_LIBRARY_PATH", root + "/usr/local/cuda/lib64:relative", "CUDA_HOME", ""));
    var search = LibrarySearch.in(places, Library.NVRTC, List.of());
    var taken = search.take();
    assertThat(search.isEmpty()).isTrue();
    assertThat(search.why(taken)).isEqualTo("the only one, in the CUDA toolkit");
  }

  @Test
  void librariesNeededTogetherComeFromOnePlace() throws IOException {
    file("usr/local/cuda-13.1/lib64/libcublasLt.so.13");
    file("usr/lib/x86_64-linux-gnu/libcublasLt.so.13");
    file("usr/lib/x86_64-linux-gnu/libcublas.so.13");
    var taken = search(Library.CUBLAS_LT).take();
    assertThat(taken.files())
        .containsExactly(
            root.resolve("usr/lib/x86_64-linux-gnu/libcublasLt.so.13"),
            root.resolve("usr/lib/x86_64-linux-gnu/libcublas.so.13"));
    assertThat(taken.text()).contains("version unknown");
  }

  @Test
  void partsOfOneCopyAreTakenTogether() throws IOException {
    for (String name : Library.CUDNN.files()) {
      var part = name.replace(".so.9", ".so.9.14.0");
      file("usr/lib/x86_64-linux-gnu/" + part);
      link("usr/lib/x86_64-linux-gnu/" + name, part);
    }
    wheel("nvidia_cudnn_cu13-9.19.0.56", "nvidia/cudnn/lib/libcudnn.so.9");
    var search = search(Library.CUDNN);
    var taken = search.take();
    assertThat(taken.version()).contains(new Version("9.14.0"));
    assertThat(taken.files()).hasSameSizeAs(Library.CUDNN.files());
    assertThat(search.isEmpty()).as("a copy without its parts").isTrue();
  }

  @Test
  void aKnownVersionIsPreferredToAnUnknownOne() throws IOException {
    file("usr/local/cuda/lib64/libnccl.so.2");
    file("usr/lib64/libnccl.so.2.10.3");
    link("usr/lib64/libnccl.so.2", "libnccl.so.2.10.3");
    assertThat(search(Library.NCCL).take().version()).contains(new Version("2.10.3"));
  }

  @Test
  void yearsInFileNamesAreNoVersion() throws IOException {
    file("usr/local/cuda-13.0/lib64/libcupti.so.2025.3.1");
    link("usr/local/cuda-13.0/lib64/libcupti.so.13", "libcupti.so.2025.3.1");
    wheel("nvidia_cuda_cupti-13.1.80", "nvidia/cu13/lib/libcupti.so.13");
    var search = search(Library.CUPTI);
    assertThat(search.take().version()).contains(new Version("13.1.80"));
    assertThat(search.take().version()).contains(new Version("13.0"));
  }

  @Test
  void pythonIsFoundByThePath() throws IOException {
    var python = file("home/me/env/bin/python3");
    Files.setPosixFilePermissions(python, PosixFilePermissions.fromString("rwxr-xr-x"));
    file("home/me/env/lib/python3.13/site-packages/nvidia/nccl/lib/libnccl.so.2");
    var places = SearchFolders.of(root, Map.of("PATH", root + "/bin:" + root + "/home/me/env/bin"));
    assertThat(LibrarySearch.in(places, Library.NCCL, List.of()).take().source())
        .isEqualTo(SearchFolder.Source.PYTHON);
  }

  @Test
  void theLoadersConfigurationIsRead() throws IOException {
    Files.writeString(file("etc/ld.so.conf.d/nvidia.conf"), "# a comment\n/opt/nvidia/lib\n");
    file("opt/nvidia/lib/libnccl.so.2");
    assertThat(search(Library.NCCL).take().file())
        .isEqualTo(root.resolve("opt/nvidia/lib/libnccl.so.2"));
  }

  @Test
  void foldersThatCannotBeReadAreNamed() throws IOException {
    var closed = root.resolve("usr/local");
    Files.createDirectories(closed);
    Files.setPosixFilePermissions(closed, PosixFilePermissions.fromString("---------"));
    try {
      assumeFalse(Files.isReadable(closed), "this user may read everything");
      assertThat(SearchFolders.of(root, Map.of()).unreadable())
          .containsExactly(closed + " cannot be read (AccessDeniedException)");
    } finally {
      Files.setPosixFilePermissions(closed, PosixFilePermissions.fromString("rwxr-xr-x"));
    }
  }

  @Test
  void aHiddenLibraryIsMissingByItsName() {
    assertThat(LibrarySearch.hidden(Library.NCCL, "nccl"))
        .contains("NCCL is hidden by BRAID_WITHOUT=nccl");
    assertThat(LibrarySearch.hidden(Library.NVSHMEM, " nccl, nvshmem ")).isPresent();
    assertThat(LibrarySearch.hidden(Library.CUDNN, "nccl,nvshmem")).isEmpty();
    assertThat(LibrarySearch.hidden(Library.NCCL, "")).isEmpty();
  }

  @Test
  void onlyOptionalLibrariesCanBeHidden() {
    var message =
        "BRAID_WITHOUT must be names of nccl, cupti, cudnn, nvshmem, cublas_mp, ucx, separated by"
            + " commas, but contains nvrtc";
    assertThatThrownBy(() -> LibrarySearch.without("nccl,nvrtc")).hasMessage(message);
    assertThat(LibrarySearch.hidden(Library.NCCL, "nvrtc")).contains(message);
    assertThat(LibrarySearch.hidden(Library.NVRTC, "nvrtc")).isEmpty();
  }

  @Test
  void aChosenFolderIsSearchedAlone() throws IOException {
    file("usr/lib/x86_64-linux-gnu/libnccl.so.2.30.1");
    link("usr/lib/x86_64-linux-gnu/libnccl.so.2", "libnccl.so.2.30.1");
    file("opt/nccl/libnccl.so.2.28.9");
    link("opt/nccl/libnccl.so.2", "libnccl.so.2.28.9");
    var places =
        SearchFolders.of(root, Map.of(Libraries.FOLDERS, "nccl=%s/opt/nccl".formatted(root)));
    var search = LibrarySearch.in(places, Library.NCCL, List.of());
    var taken = search.take();
    assertThat(taken.text())
        .isEqualTo(
            "%s/opt/nccl/libnccl.so.2 (2.28.9, in the folder of BRAID_LIBRARIES)".formatted(root));
    assertThat(search.isEmpty()).isTrue();
    // Another folder has it, but that one was not chosen.
    var empty = SearchFolders.of(root, Map.of(Libraries.FOLDERS, "nccl=" + root));
    assertThat(LibrarySearch.in(empty, Library.NCCL, List.of()).isEmpty()).isTrue();
    assertThat(empty.chosen(Library.CUDNN)).isEmpty();
  }

  @Test
  void foldersOfUnknownLibrariesAreRefused() {
    assertThat(LibrarySearch.folders("nccl=/a, cudnn=/b,nccl=/c"))
        .isEqualTo(Map.of(Library.NCCL, Path.of("/c"), Library.CUDNN, Path.of("/b")));
    assertThat(LibrarySearch.folders("")).isEmpty();
    for (var wrong : List.of("nvidia=/a", "nccl", "nccl=a", "cuda_driver=/a", "NCCL=/a")) {
      assertThatThrownBy(() -> LibrarySearch.folders(wrong))
          .hasMessageStartingWith(
              "BRAID_LIBRARIES must be LIBRARY=/FOLDER, separated by commas, of")
          .hasMessageEndingWith(", but contains " + wrong);
    }
  }

  @Test
  void versionsDifferOnlyWhereBothHaveANumber() {
    assertThat(new Version("2.28.9").newerThan(new Version("2.28.3"))).isTrue();
    assertThat(new Version("2.28.9").newerThan(new Version("2.9"))).isTrue();
    assertThat(new Version("13.0.96").newerThan(new Version("13.0"))).isFalse();
    assertThat(new Version("13.0").newerThan(new Version("13.0.96"))).isFalse();
    assertThat(Version.of("13.0rc1")).isEmpty();
  }
}
