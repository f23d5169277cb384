package braid.internal.host;

import braid.BraidException;
import braid.GroupAborted;
import braid.internal.resource.AllocationFailed;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;

/// Memory that several processes map: a file of /dev/shm which is unlinked as soon as all of them
/// have it, so that it ends with the last of them however they end. A session whose ranks are
/// killed in between finds what they left by the prefix that its token gives the names, and sweeps
/// it.
///
/// One meeting sets it up. Every member makes or opens the file by a name all of them know, maps it
/// and zeroes its part; then they tell each other how that went; then it is unlinked. What fails on
/// one is undone on all, and the next try has another name.
public final class SharedFile {
  private static final Path FOLDER = Path.of("/dev/shm");
  private static final int PREFIX_DIGITS = 12;
  private static final int ZEROES_BYTES = 1 << 20;

  private SharedFile() {}

  /// What the names of all files begin with that ranks of that token make.
  public static String prefix(String token) {
    try {
      var digest =
          MessageDigest.getInstance("SHA-256").digest(token.getBytes(StandardCharsets.UTF_8));
      return "braid-" + HexFormat.of().formatHex(digest).substring(0, PREFIX_DIGITS) + "-";
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }

  /// Removes what ranks of that token left behind, and says how many files that was. Only for when
  /// none of them runs any more.
  public static int sweep(String token) {
    int removed = 0;
    try (DirectoryStream<Path> left = Files.newDirectoryStream(FOLDER, prefix(token) + "*")) {
      for (var file : left) {
        if (Files.deleteIfExists(file)) {
          removed++;
        }
      }
      return removed;
    } catch (IOException e) {
      throw new BraidException("cannot sweep " + FOLDER + ": " + e.getMessage(), e);
    }
  }

  /// The file of that name of the ranks of that token.
  static Path file(String token, String name) {
    return FOLDER.resolve(prefix(token) + name);
  }

  /// Allocates that many bytes for each member, zeroed. All members call it together.
  public static SymmetricMemory allocate(
      String token, String label, long bytesPerRank, Rendezvous rendezvous) {
    return allocate(token, label, bytesPerRank, rendezvous, Supplier::get, () -> {});
  }

  /// The same out of memory that the ranks of a machine have in common.
  public static SymmetricMemory allocate(
      String token, String label, long bytesPerRank, Rendezvous rendezvous, FreeMemory memory) {
    return allocate(
        token,
        label,
        bytesPerRank,
        rendezvous,
        fill -> memory.take(bytesPerRank, fill),
        () -> memory.gaveBack(bytesPerRank));
  }

  private static SymmetricMemory allocate(
      String token,
      String label,
      long bytesPerRank,
      Rendezvous rendezvous,
      Function<Supplier<MemorySegment>, MemorySegment> filling,
      Runnable freed) {
    var place = rendezvous.place();
    var file = file(token, rendezvous.unique());
    var arena = Arena.ofShared();
    try {
      var mapped = MemorySegment.NULL;
      var failure = "";
      try {
        mapped =
            filling.apply(
                () -> mapUnchecked(file, bytesPerRank, place.rank(), place.size(), arena));
      } catch (GroupAborted released) {
        throw released;
      } catch (UncheckedIOException e) {
        failure = String.valueOf(e.getCause().getMessage());
      } catch (BraidException refused) {
        failure = String.valueOf(refused.getMessage());
      }
      agree(label, bytesPerRank, failure, rendezvous);
      unlink(file);
      return SymmetricMemory.sideBySide(
          mapped,
          bytesPerRank,
          new Once(
              () -> {
                arena.close();
                freed.run();
              }));
    } catch (RuntimeException | Error e) {
      try {
        unlink(file);
      } catch (BraidException unlinked) {
        e.addSuppressed(unlinked);
      }
      arena.close();
      throw e;
    }
  }

  private static MemorySegment mapUnchecked(
      Path file, long bytesPerRank, int rank, int size, Arena arena) {
    try {
      return map(file, bytesPerRank, rank, size, arena);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static MemorySegment map(Path file, long bytesPerRank, int rank, int size, Arena arena)
      throws IOException {
    if (bytesPerRank > free() || bytesPerRank > total() / size) {
      throw new IOException("no room");
    }
    var options =
        Set.of(
            StandardOpenOption.CREATE,
            StandardOpenOption.READ,
            StandardOpenOption.WRITE,
            LinkOption.NOFOLLOW_LINKS);
    var onlyOwner =
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    try (var channel = FileChannel.open(file, options, onlyOwner)) {
      // Written, not only reserved: a mapping of pages that are not there would end the process at
      // the first touch, where a write says that there is no room.
      var zeroes = ByteBuffer.allocateDirect((int) Math.min(bytesPerRank, ZEROES_BYTES));
      for (long written = 0; written < bytesPerRank; ) {
        zeroes.clear().limit((int) Math.min(bytesPerRank - written, zeroes.capacity()));
        written += channel.write(zeroes, rank * bytesPerRank + written);
      }
      return channel.map(FileChannel.MapMode.READ_WRITE, 0, size * bytesPerRank, arena);
    }
  }

  private static void agree(
      String label, long bytesPerRank, String failure, Rendezvous rendezvous) {
    var failures = rendezvous.exchange(label, failure);
    var said = new ArrayList<String>();
    for (int i = 0; i < failures.size(); i++) {
      if (!failures.get(i).isEmpty()) {
        said.add("rank " + rendezvous.ranks().get(i) + ": " + failures.get(i));
      }
    }
    if (!said.isEmpty()) {
      throw new AllocationFailed(
          "%s needs %d bytes a rank of %s, where %d are free, and failed (%s); close what is not needed"
              .formatted(label, bytesPerRank, FOLDER, free(), String.join("; ", said)));
    }
  }

  private static long total() {
    try {
      return Files.getFileStore(FOLDER).getTotalSpace();
    } catch (IOException e) {
      return 0;
    }
  }

  private static long free() {
    try {
      return Files.getFileStore(FOLDER).getUsableSpace();
    } catch (IOException e) {
      return 0;
    }
  }

  private static void unlink(Path file) {
    try {
      Files.deleteIfExists(file);
    } catch (IOException e) {
      throw new BraidException("cannot unlink " + file + ": " + e.getMessage(), e);
    }
  }
}
