package braid.internal.shared;

import static braid.internal.shared.SharedFile.FAMILY;
import static braid.internal.shared.SharedFile.FOLDER;
import static braid.internal.shared.SharedFile.PROCESSES;

import braid.model.BraidException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// Removes shared files whose ranks were killed between creating and unlinking them. A file that
/// cannot be removed is reported, not thrown: it must not fail a finished run.
///
/// @param files number of removed files
/// @param bytes their total size
/// @param failures reasons why files could not be removed
public record SharedFileSweep(int files, long bytes, List<String> failures) {
  public SharedFileSweep {
    failures = List.copyOf(failures);
  }

  /// One line of text; empty if no file was found.
  public Optional<String> line() {
    var parts = new ArrayList<String>();
    if (files > 0) {
      parts.add(
          "removed %d %s (%d MiB) that killed sessions left in %s"
              .formatted(files, files == 1 ? "file" : "files", bytes >> 20, FOLDER));
    }
    parts.addAll(failures);
    return parts.isEmpty() ? Optional.empty() : Optional.of(String.join("; ", parts));
  }

  /// Removes the files of the token's ranks, none of which may still run.
  public static SharedFileSweep ofSession(String token) {
    var failures = new ArrayList<String>();
    return remove(list(SharedFile.prefix(token), failures), failures);
  }

  /// Removes files of this user's killed sessions: those that no process has open or mapped. A live
  /// session's file is always held by the rank that created it.
  public static SharedFileSweep ofKilledSessions() {
    var failures = new ArrayList<String>();
    var left = list(FAMILY, failures);
    left.removeIf(file -> !isOurs(file));
    if (!left.isEmpty()) {
      // After the listing, so that files created later are not considered.
      var held = heldFiles();
      left.removeIf(file -> held.contains(file.toString()));
    }
    return remove(left, failures);
  }

  private static List<Path> list(String prefix, List<String> failures) {
    var files = new ArrayList<Path>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(FOLDER, prefix + "*")) {
      all.forEach(files::add);
    } catch (IOException | DirectoryIteratorException e) {
      failures.add("cannot list %s: %s".formatted(FOLDER, SharedFile.reason(e)));
    }
    return files;
  }

  private static SharedFileSweep remove(List<Path> files, List<String> failures) {
    int removed = 0;
    long bytes = 0;
    for (var file : files) {
      try {
        long size = Files.size(file);
        if (Files.deleteIfExists(file)) {
          removed++;
          bytes += size;
        }
      } catch (NoSuchFileException e) {
        // Another rank's sweep was faster.
      } catch (IOException e) {
        failures.add("cannot remove " + SharedFile.reason(e));
      }
    }
    return new SharedFileSweep(removed, bytes, failures);
  }

  private static boolean isOurs(Path file) {
    try {
      return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
          && SharedFile.user(file) == SharedFile.thisUser();
    } catch (IOException e) {
      return false;
    }
  }

  /// Returns the shared files that some process has open or mapped.
  private static Set<String> heldFiles() {
    var held = new HashSet<String>();
    try (DirectoryStream<Path> processes = Files.newDirectoryStream(PROCESSES, "[0-9]*")) {
      for (var process : processes) {
        addMapped(process, held);
        addOpen(process, held);
      }
    } catch (IOException | DirectoryIteratorException e) {
      throw new BraidException("cannot list the processes: " + SharedFile.reason(e), e);
    }
    return held;
  }

  private static void addMapped(Path process, Set<String> held) {
    try (var lines = Files.lines(process.resolve("maps"), StandardCharsets.ISO_8859_1)) {
      lines
          .filter(line -> line.contains(FOLDER + "/" + FAMILY))
          .forEach(line -> held.add(line.substring(line.indexOf('/'))));
    } catch (IOException | UncheckedIOException e) {
      // A process that ends meanwhile, or of another user, holds no file of ours.
    }
  }

  private static void addOpen(Path process, Set<String> held) {
    try (DirectoryStream<Path> open = Files.newDirectoryStream(process.resolve("fd"))) {
      for (var descriptor : open) {
        held.add(Files.readSymbolicLink(descriptor).toString());
      }
    } catch (IOException | DirectoryIteratorException e) {
      // As in addMapped.
    }
  }
}
