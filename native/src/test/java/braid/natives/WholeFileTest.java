package braid.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WholeFileTest {
  /// User id of no user who runs tests.
  private static final int STRANGER = 12345;

  @TempDir Path folder;

  private static Object unix(Path file, String attribute) throws IOException {
    return Files.getAttribute(file, "unix:" + attribute, LinkOption.NOFOLLOW_LINKS);
  }

  private static boolean isRoot() throws IOException {
    return unix(Path.of("/proc/self"), "uid").equals(0);
  }

  private static void shell(Path directory, String command) throws Exception {
    var shell = new ProcessBuilder("sh", "-c", command).directory(directory.toFile()).inheritIO();
    assertThat(shell.start().waitFor()).as(command).isZero();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-------", "rw-rw-rw-", "rwxr-x--x"})
  void aFileKeepsItsMode(String mode) throws IOException {
    var file = Files.writeString(folder.resolve("a"), "old");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
    WholeFile.write(file, "new");
    assertThat(file).hasContent("new");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file))).isEqualTo(mode);
    assertThat(folder.toFile().list()).containsExactly("a");
  }

  @Test
  void anInterruptedThreadWritesTheWholeFileAndStaysInterrupted() throws IOException {
    var file = folder.resolve("file");
    Thread.currentThread().interrupt();
    WholeFile.write(file, "whole");
    assertThat(Thread.interrupted()).isTrue();
    assertThat(file).hasContent("whole");
  }

  @Test
  void aNewFileHasTheModeOfTheShell() throws Exception {
    shell(folder, ": > b");
    WholeFile.write(folder.resolve("a"), "new");
    assertThat(Files.getPosixFilePermissions(folder.resolve("a")))
        .isEqualTo(Files.getPosixFilePermissions(folder.resolve("b")));
  }

  @Test
  void aFileKeepsItsOwner() throws IOException {
    assumeTrue(isRoot(), "only root may give a file away");
    var file = Files.writeString(folder.resolve("a"), "old");
    Files.setAttribute(file, "unix:uid", STRANGER);
    Files.setAttribute(file, "unix:gid", STRANGER);
    WholeFile.write(file, "new");
    assertThat(unix(file, "uid")).isEqualTo(STRANGER);
    assertThat(unix(file, "gid")).isEqualTo(STRANGER);
  }

  /// Another user of the folder could guess a name made of the file's name and the process id.
  @Test
  void aPlantedLinkBesideTheFileIsNotFollowed() throws IOException {
    var victim = Files.writeString(folder.resolve("victim"), "mine");
    var out = Files.createDirectory(folder.resolve("out"));
    var guessed = out.resolve(".a." + ProcessHandle.current().pid() + ".tmp");
    Files.createSymbolicLink(guessed, victim);
    WholeFile.write(out.resolve("a"), "new");
    assertThat(victim).hasContent("mine");
    assertThat(guessed).isSymbolicLink();
    assertThat(out.resolve("a")).hasContent("new").isRegularFile();
  }

  @Test
  void aDeviceIsWritten() throws Exception {
    assumeTrue(isRoot(), "only root may make a device");
    shell(folder, "mknod null c 1 3");
    var device = folder.resolve("null");
    var before = unix(device, "ino");
    WholeFile.write(device, "new");
    assertThat(unix(device, "ino")).as("the same file").isEqualTo(before);
    assertThat(unix(device, "rdev")).isEqualTo(unix(Path.of("/dev/null"), "rdev"));
    assertThat(folder.toFile().list()).containsExactly("null");
  }

  @Test
  void aFifoIsRefused() throws Exception {
    shell(folder, "mkfifo pipe");
    var fifo = folder.resolve("pipe");
    assertThatThrownBy(() -> WholeFile.write(fifo, "new"))
        .isInstanceOf(FileSystemException.class)
        .hasMessageContaining("is neither a file nor a character device");
    assertThat(Files.readAttributes(fifo, BasicFileAttributes.class).isOther()).isTrue();
  }

  @Test
  void aLinkToAFileIsFollowed() throws IOException {
    var elsewhere = Files.createDirectory(folder.resolve("elsewhere"));
    var link = Files.createSymbolicLink(folder.resolve("a"), Path.of("b"));
    Files.createSymbolicLink(folder.resolve("b"), Path.of("elsewhere/c"));
    for (var content : List.of("made", "replaced")) {
      WholeFile.write(link, content);
      assertThat(link).isSymbolicLink();
      assertThat(elsewhere.resolve("c")).isRegularFile().hasContent(content);
    }
    assertThat(elsewhere.toFile().list()).containsExactly("c");
  }

  @Test
  void aLinkToItselfIsRefused() throws IOException {
    var link = Files.createSymbolicLink(folder.resolve("a"), Path.of("a"));
    assertThatThrownBy(() -> WholeFile.write(link, "new"))
        .isInstanceOf(FileSystemException.class)
        .hasMessageContaining("is a link to itself");
  }

  /// As Linux does for links in /tmp (protected_symlinks), but in every folder that others can
  /// write.
  @Test
  void aStrangersLinkInAnOpenFolderIsRefused() throws IOException {
    assumeTrue(isRoot(), "only root may make a link in another user's name");
    var victim = Files.writeString(folder.resolve("victim"), "mine");
    var open = Files.createDirectory(folder.resolve("open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    var link = Files.createSymbolicLink(open.resolve("a"), victim);
    WholeFile.write(link, "by me");
    assertThat(victim).hasContent("by me");
    Files.setAttribute(link, "unix:uid", STRANGER, LinkOption.NOFOLLOW_LINKS);
    assertThatThrownBy(() -> WholeFile.write(link, "by a stranger"))
        .isInstanceOf(FileSystemException.class)
        .hasMessageContaining("is a link that another user created");
    assertThat(victim).hasContent("by me");
  }
}
