package braid.internal.remote;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// Identifies the host of a rank: ranks with the same identity share memory. Containers of one
/// machine may have one name but file systems of their own for shared memory.
///
/// @param shared kernel and file system of shared memory; empty if they are not known
public record HostIdentity(String name, String shared) {
  private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");
  private static final Path NAME = Path.of("/proc/sys/kernel/hostname");
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");
  private static final String SEPARATOR = "\0";
  private static final String UNKNOWN = "host";

  /// Returns the identity of this process's host.
  ///
  /// @param given the name that its environment gives it
  public static HostIdentity ofThisProcess(Optional<String> given) {
    return new HostIdentity(given.orElseGet(HostIdentity::thisName), thisMemory());
  }

  /// Returns the name of this machine.
  public static String thisName() {
    try {
      var name = Files.readString(NAME).strip();
      return name.isEmpty() ? UNKNOWN : name;
    } catch (IOException e) {
      return UNKNOWN;
    }
  }

  /// Returns the kernel and the file system of shared memory. Namespaces of one kernel may have
  /// file systems of their own, with which they share no memory.
  private static String thisMemory() {
    try {
      return Files.readString(BOOT).strip() + " " + Files.getAttribute(SHARED_MEMORY, "unix:dev");
    } catch (IOException | UnsupportedOperationException e) {
      // Without either, hosts are told apart by their names.
      return "";
    }
  }

  public String text() {
    return name + SEPARATOR + shared;
  }

  public static HostIdentity parse(String text) {
    var fields = text.split(SEPARATOR, 2);
    return new HostIdentity(fields[0], fields[1]);
  }
}
