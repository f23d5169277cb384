package braid.natives;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Objects;

/// How JavaCPP is set up, before the first of its classes is touched.
public final class JavaCpp {
  private static final String PREFIX = "org.bytedeco.javacpp.";
  private static final String CACHE = PREFIX + "cachedir";

  private JavaCpp() {}

  /// Takes JavaCPP's own limits off: it counts the whole process, and a process with a GPU has
  /// gigabytes mapped and pinned that Java's heap knows nothing of. Has native libraries unpacked
  /// where no other user can put one. What is set already stays.
  ///
  /// @throws UnsatisfiedLinkError if there is no such folder, with one line for the user
  public static void prepare() {
    for (String limit : new String[] {"maxbytes", "maxphysicalbytes"}) {
      if (System.getProperty(PREFIX + limit) == null) {
        System.setProperty(PREFIX + limit, "0");
      }
    }
    if (System.getProperty(CACHE) == null && !hasHome()) {
      System.setProperty(
          CACHE, ownFolder(Path.of(System.getProperty("java.io.tmpdir"))).toString());
    }
  }

  /// Whether JavaCPP's default will do, which it makes in the user's home.
  private static boolean hasHome() {
    var home = Path.of(System.getProperty("user.home", ""));
    var cache = home.resolve(".javacpp", "cache");
    try {
      return home.isAbsolute() && Files.isWritable(Files.createDirectories(cache));
    } catch (IOException e) {
      return false;
    }
  }

  /// A folder in `parent`, which anybody may write in, that nobody but this user can write in.
  /// JavaCPP's own choice there is a name that another user can take first, with libraries in it.
  static Path ownFolder(Path parent) {
    try {
      var user = Objects.requireNonNull(Files.getAttribute(Path.of("/proc/self"), "unix:uid"));
      var folder = parent.resolve("braid-" + user);
      var onlyOwner =
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
      try {
        Files.createDirectory(folder, onlyOwner);
      } catch (FileAlreadyExistsException e) {
        // of an earlier process, or of a stranger
      }
      var found = Files.readAttributes(folder, "unix:uid,permissions", LinkOption.NOFOLLOW_LINKS);
      if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
          || !user.equals(found.get("uid"))
          || !onlyOwner.value().equals(found.get("permissions"))) {
        throw new UnsatisfiedLinkError(
            folder
                + " must be a folder of this user alone (mode 0700), because native libraries are"
                + " loaded from it, but is not; remove it, or set HOME to a folder of yours");
      }
      return folder;
    } catch (IOException e) {
      throw new UnsatisfiedLinkError(
          "native libraries need a folder of this user alone but none can be made in %s (%s); set HOME to a folder of yours"
              .formatted(parent, e));
    }
  }
}
