package braid.natives;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;

/// Replaces a file atomically: readers find the old content or the new, never a part, however many
/// processes write at once. The content is written to a temporary file in the same folder, which is
/// then moved over the target; a failure leaves the old file. Mode and owner of the old file are
/// kept as far as the system permits. Character devices, such as `/dev/null`, are written in place.
public final class WholeFile {
  /// Most symbolic links in a row, as in Linux.
  private static final int MAX_LINKS = 40;

  private static final int FILE_TYPE = 0170000;
  private static final int CHARACTER_DEVICE = 0020000;
  private static final int PERMISSIONS = 0777;
  private static final int OTHERS_WRITE = 0022;
  private static final int ROOT = 0;

  private static final FileAttribute<Set<PosixFilePermission>> ONLY_OWNER =
      PosixFilePermissions.asFileAttribute(
          EnumSet.of(PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE));

  private WholeFile() {}

  public static void write(Path file, String content) throws IOException {
    write(file, content.getBytes(StandardCharsets.UTF_8));
  }

  /// Writes all content even if the thread is interrupted meanwhile; the thread then stays
  /// interrupted.
  ///
  /// @throws FileSystemException if [#target] refuses the file
  public static void write(Path file, byte[] content) throws IOException {
    boolean interrupted = Thread.interrupted();
    try {
      while (!wrote(file, content)) {
        interrupted |= Thread.interrupted();
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /// Returns false if an interrupt closed the file.
  private static boolean wrote(Path file, byte[] content) throws IOException {
    try {
      replace(file, content);
      return true;
    } catch (ClosedByInterruptException e) {
      return false;
    }
  }

  private static void replace(Path file, byte[] content) throws IOException {
    var target = target(file);
    boolean exists = Files.exists(target, LinkOption.NOFOLLOW_LINKS);
    if (exists && !Files.isRegularFile(target, LinkOption.NOFOLLOW_LINKS)) {
      put(target, content, Set.of(StandardOpenOption.WRITE));
      return;
    }
    var beside = target.resolveSibling(".unfinished-" + UUID.randomUUID());
    var fresh = Set.of(StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW);
    try {
      if (exists) {
        put(beside, content, fresh, ONLY_OWNER);
        keepOwnerAndMode(target, beside);
      } else {
        put(beside, content, fresh);
      }
      Files.move(beside, target, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(beside);
    }
  }

  /// Returns the file or character device that writing to `file` replaces. Links are followed, as
  /// `>` does in a shell. The exception is a link that another user may have planted: in a folder
  /// that other users can write, a link is followed only if this user, root or the folder's owner
  /// created it.
  ///
  /// @throws FileSystemException if it is neither, with a reason for users
  public static Path target(Path file) throws IOException {
    var target = file.toAbsolutePath();
    for (int links = 0; Files.isSymbolicLink(target); links++) {
      if (links == MAX_LINKS) {
        throw new FileSystemException(file.toString(), null, "is a link to itself; name a file");
      }
      requireOwn(target);
      target = target.resolveSibling(Files.readSymbolicLink(target));
    }
    boolean writable =
        !Files.exists(target, LinkOption.NOFOLLOW_LINKS)
            || Files.isRegularFile(target, LinkOption.NOFOLLOW_LINKS)
            || isCharacterDevice(target);
    if (!writable) {
      throw new FileSystemException(
          file.toString(), null, "is neither a file nor a character device; name a file");
    }
    return target;
  }

  private static boolean isCharacterDevice(Path file) throws IOException {
    return (attribute(file, "mode") & FILE_TYPE) == CHARACTER_DEVICE;
  }

  private static void requireOwn(Path link) throws IOException {
    var folder = link.resolveSibling(".");
    int owner = attribute(link, "uid");
    if ((attribute(folder, "mode") & OTHERS_WRITE) != 0
        && owner != ROOT
        && owner != attribute(Path.of("/proc/self"), "uid")
        && owner != attribute(folder, "uid")) {
      throw new FileSystemException(
          link.toString(),
          null,
          "is a link that another user created in a folder that others can write; name its target");
    }
  }

  /// Returns a Unix attribute of the file itself, also if it is a link.
  private static int attribute(Path file, String name) throws IOException {
    var value = Files.getAttribute(file, "unix:" + name, LinkOption.NOFOLLOW_LINKS);
    return (int) Objects.requireNonNull(value);
  }

  private static void put(
      Path file, byte[] content, Set<StandardOpenOption> options, FileAttribute<?>... attributes)
      throws IOException {
    try (var channel = FileChannel.open(file, options, attributes)) {
      for (var left = ByteBuffer.wrap(content); left.hasRemaining(); ) {
        channel.write(left);
      }
    }
  }

  private static void keepOwnerAndMode(Path old, Path fresh) throws IOException {
    for (var id : List.of("gid", "uid")) {
      int kept = attribute(old, id);
      if (kept != attribute(fresh, id)) {
        try {
          Files.setAttribute(fresh, "unix:" + id, kept);
        } catch (FileSystemException e) {
          // only root may give files away
        }
      }
    }
    Files.setAttribute(fresh, "unix:mode", attribute(old, "mode") & PERMISSIONS);
  }
}
