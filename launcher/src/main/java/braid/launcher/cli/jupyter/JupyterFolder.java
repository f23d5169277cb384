package braid.launcher.cli.jupyter;

import braid.natives.WholeFolder;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/// A temporary folder for the kernelspec of one `braid lab`. A file in it is locked as long as its
/// process lives. Folders whose lock is free were left by processes that were killed; the next
/// start removes them.
final class JupyterFolder implements AutoCloseable {
  private static final String PREFIX = "braid-jupyter";
  private static final String LOCK = "lock";

  private final Path path;
  private final FileChannel lock;

  private JupyterFolder(Path path, FileChannel lock) {
    this.path = path;
    this.lock = lock;
  }

  static JupyterFolder create(Path temporary) throws IOException {
    var path = Files.createTempDirectory(temporary, PREFIX);
    var unlocked = path.resolve("new");
    var lock = FileChannel.open(unlocked, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    var _ = lock.lock();
    // Locked before it gets its name, so that no other start takes the folder for a dead one's.
    Files.move(unlocked, path.resolve(LOCK));
    sweep(temporary, path);
    return new JupyterFolder(path, lock);
  }

  Path path() {
    return path;
  }

  /// Removes folders of dead processes of the same user; one that cannot be removed stays. Closing
  /// any channel of a file frees this process's lock on it, so its own folder is left out.
  private static void sweep(Path temporary, Path own) throws IOException {
    var user = Files.getOwner(own);
    try (DirectoryStream<Path> folders = Files.newDirectoryStream(temporary, PREFIX + "*")) {
      for (var folder : folders) {
        if (!folder.equals(own)
            && Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
            && Files.getOwner(folder, LinkOption.NOFOLLOW_LINKS).equals(user)) {
          removeIfDead(folder);
        }
      }
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
  }

  private static void removeIfDead(Path folder) {
    try (var lock =
            FileChannel.open(
                folder.resolve(LOCK), StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
        var free = lock.tryLock()) {
      if (free != null) {
        WholeFolder.delete(folder);
      }
    } catch (IOException | OverlappingFileLockException e) {
      // Created or removed by another start, or used in this process.
    }
  }

  /// Removes the folder. Further calls have no effect.
  @Override
  public synchronized void close() throws IOException {
    WholeFolder.delete(path);
    lock.close();
  }
}
