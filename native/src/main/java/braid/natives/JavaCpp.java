package braid.natives;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Objects;

/// Sets JavaCPP's system properties. Must run before any JavaCPP class is loaded.
public final class JavaCpp {
  private static final String PREFIX = "org.bytedeco.javacpp.";
  private static final String CACHE = PREFIX + "cachedir";

  private JavaCpp() {}

  /// Removes JavaCPP's memory limits: they apply to the whole process, and a process with a GPU
  /// maps and pins gigabytes outside the Java heap. If the user's home is not writable, sets the
  /// folder for unpacked native libraries to one that no other user can write. Keeps properties
  /// that are already set.
  ///
  /// @throws UnsatisfiedLinkError with a one-line message for users, if there is no such folder
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

  /// Returns true if JavaCPP's default folder, in the user's home, is writable.
  private static boolean hasHome() {
    var home = Path.of(System.getProperty("user.home", ""));
    var cache = home.resolve(".javacpp", "cache");
    try {
      return home.isAbsolute() && Files.isWritable(Files.createDirectories(cache));
    } catch (IOException e) {
      return false;
    }
  }

  /// Returns a folder in `parent` that only this user can write, although every user can write
  /// `parent`. JavaCPP's own choice has a predictable name: another user could create that folder
  /// first and put libraries into it.
  static Path ownFolder(Path parent) {
    try {
      var user = Objects.requireNonNull(Files.getAttribute(Path.of("/proc/self"), "unix:uid"));
      var folder = parent.resolve("braid-" + user);
      var onlyOwner =
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
      try {
        Files.createDirectory(folder, onlyOwner);
      } catch (FileAlreadyExistsException e) {
        // from an earlier process or another user; checked below
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
          "native libraries need a folder of this user alone but none can be created in %s (%s); set HOME to a folder of yours"
              .formatted(parent, e));
    }
  }
}
