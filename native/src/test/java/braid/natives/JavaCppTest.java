package braid.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Folder of unpacked native libraries for a user without a home.
class JavaCppTest {
  @TempDir Path folder;
  private Path own;

  @BeforeEach
  void name() throws IOException {
    own = folder.resolve("braid-" + Files.getAttribute(Path.of("/proc/self"), "unix:uid"));
  }

  @Test
  void theFolderIsThisUsersAlone() throws IOException {
    for (int i = 0; i < 2; i++) {
      assertThat(JavaCpp.ownFolder(folder)).isEqualTo(own);
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(own)))
          .isEqualTo("rwx------");
    }
  }

  @Test
  void aFolderThatOthersCanWriteIsRefused() throws IOException {
    Files.createDirectory(own);
    Files.setPosixFilePermissions(own, PosixFilePermissions.fromString("rwxrwxrwx"));
    refused();
  }

  @Test
  void aFolderThatAnotherUserMadeIsRefused() throws IOException {
    Files.createDirectory(own);
    Files.setPosixFilePermissions(own, PosixFilePermissions.fromString("rwx------"));
    assertThat(JavaCpp.ownFolder(folder)).isEqualTo(own);
    assumeTrue(own.endsWith("braid-0"), "only root may give a folder away");
    Files.setAttribute(own, "unix:uid", 12345);
    refused();
  }

  @Test
  void aLinkInItsPlaceIsRefused() throws IOException {
    var elsewhere = Files.createDirectory(folder.resolve("elsewhere"));
    Files.setPosixFilePermissions(elsewhere, PosixFilePermissions.fromString("rwx------"));
    Files.createSymbolicLink(own, elsewhere);
    refused();
  }

  private void refused() {
    assertThatThrownBy(() -> JavaCpp.ownFolder(folder))
        .isInstanceOf(UnsatisfiedLinkError.class)
        .hasMessage(
            own
                + " must be a folder of this user alone (mode 0700), because native libraries are"
                + " loaded from it, but is not; remove it, or set HOME to a folder of yours");
  }
}
