package braid.internal.shared;

import braid.internal.rank.Once;
import braid.internal.resource.AllocationFailed;
import braid.internal.resource.FreeSpace;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.model.BraidException;
import braid.model.GroupAborted;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// Memory that several processes map: a file of /dev/shm that is unlinked as soon as all have
/// mapped it, so that the kernel frees it with the last process, however they end.
///
/// Set up in one meeting. Every member creates or opens the file, maps it and zeroes its part; then
/// they exchange their outcomes and the inodes they mapped; then the file is unlinked. A failure of
/// one is undone on all, and the next attempt uses another name.
///
/// The name is derived from the session's secret token, so that no other user can create it first.
/// A member accepts only a file of its own user with mode 0600, and all members must have mapped
/// the same inode: a file that is replaced or deleted meanwhile is an error.
///
/// The file has a name only during the meeting. [SharedFileSweep] removes files of killed ranks.
public final class SharedFile {
  static final Path FOLDER = Path.of("/dev/shm");
  static final Path PROCESSES = Path.of("/proc");
  private static final Path MAPPINGS = PROCESSES.resolve("self/maps");
  static final String FAMILY = "braid-";
  private static final int PREFIX_DIGITS = 12;
  private static final int NAME_DIGITS = 32;
  private static final String MAPPED = "inode ";
  private static final int PERMISSIONS = 07777;
  private static final int ONLY_OWNER = 0600;
  private static final int ZEROES_BYTES = 1 << 20;
  static final long PAGE_BYTES = 4096;

  private SharedFile() {}

  /// Returns the free part of shared memory, for some members of a group.
  public static FreeSpace space(List<Integer> members) {
    return new FreeSpace(FOLDER.toString(), free(), members, PAGE_BYTES, 0);
  }

  /// Prefix of all file names of the token.
  public static String prefix(String token) {
    return FAMILY + digest(token).substring(0, PREFIX_DIGITS) + "-";
  }

  /// File of that name for all ranks with the token; its path cannot be guessed without the token.
  static Path file(String token, String name) {
    return FOLDER.resolve(prefix(token) + digest(token + "\n" + name).substring(0, NAME_DIGITS));
  }

  private static String digest(String secret) {
    try {
      var digest =
          MessageDigest.getInstance("SHA-256").digest(secret.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(digest);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }

  /// Allocates zeroed memory for each member. Collective: all members call it together.
  public static SymmetricMemory allocate(
      String token, String label, long bytesPerRank, Rendezvous rendezvous) {
    return allocate(token, label, bytesPerRank, rendezvous, Supplier::get, () -> {});
  }

  /// Allocates as above, accounted for in the memory that the ranks of a machine share.
  public static SymmetricMemory allocate(
      String token, String label, long bytesPerRank, Rendezvous rendezvous, FreeMemory memory) {
    return allocate(
        token,
        label,
        bytesPerRank,
        rendezvous,
        fill -> memory.take(bytesPerRank, fill),
        () -> memory.released(bytesPerRank));
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
      var outcome = "";
      try {
        if (bytesPerRank > free() || bytesPerRank > total() / place.size()) {
          throw new IOException("no room");
        }
        mapped =
            filling.apply(
                () -> mapUnchecked(file, bytesPerRank, place.rank(), place.size(), arena));
        outcome = MAPPED + identity(file, mapped);
      } catch (GroupAborted released) {
        throw released;
      } catch (IOException | BraidException e) {
        outcome = reason(e);
      } catch (UncheckedIOException e) {
        outcome = reason(Objects.requireNonNull(e.getCause()));
      }
      agree(label, bytesPerRank, outcome, rendezvous);
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
    var options =
        Set.of(
            StandardOpenOption.CREATE,
            StandardOpenOption.READ,
            StandardOpenOption.WRITE,
            LinkOption.NOFOLLOW_LINKS);
    var onlyOwner =
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    try (var channel = FileChannel.open(file, options, onlyOwner)) {
      // Written, not only reserved: touching an unbacked page kills the process, whereas a write
      // fails with an error.
      var zeroes = ByteBuffer.allocateDirect((int) Math.min(bytesPerRank, ZEROES_BYTES));
      for (long written = 0; written < bytesPerRank; ) {
        zeroes.clear().limit((int) Math.min(bytesPerRank - written, zeroes.capacity()));
        written += channel.write(zeroes, rank * bytesPerRank + written);
      }
      return channel.map(FileChannel.MapMode.READ_WRITE, 0, size * bytesPerRank, arena);
    }
  }

  /// Returns the mapped inode, as the kernel lists it. Throws unless it is the file of that path,
  /// owned by this user with mode 0600.
  private static long identity(Path file, MemorySegment mapped) throws IOException {
    long inode = mappedInode(mapped.address());
    Map<String, Object> attributes;
    try {
      attributes = Files.readAttributes(file, "unix:ino,uid,mode", LinkOption.NOFOLLOW_LINKS);
    } catch (NoSuchFileException e) {
      throw new IOException("its file was deleted meanwhile", e);
    }
    int mode = (int) number(attributes, "mode") & PERMISSIONS;
    if (number(attributes, "ino") != inode) {
      throw new IOException("its file was replaced meanwhile");
    }
    if (number(attributes, "uid") != thisUser() || mode != ONLY_OWNER) {
      throw new IOException(
          "its file has user %s and mode %o, not this user and 600"
              .formatted(attributes.get("uid"), mode));
    }
    return inode;
  }

  private static long number(Map<String, Object> attributes, String name) {
    return ((Number) Objects.requireNonNull(attributes.get(name))).longValue();
  }

  static int thisUser() throws IOException {
    return user(Path.of("/proc/self/status"));
  }

  static int user(Path file) throws IOException {
    return (int) Files.getAttribute(file, "unix:uid", LinkOption.NOFOLLOW_LINKS);
  }

  private static long mappedInode(long address) throws IOException {
    var start = Long.toHexString(address) + "-";
    try (var lines = Files.lines(MAPPINGS, StandardCharsets.ISO_8859_1)) {
      // For example: 7f5c8a000000-7f5c8a100000 rw-s 00000000 00:1a 42   /dev/shm/name
      return lines
          .filter(line -> line.startsWith(start))
          .mapToLong(line -> Long.parseLong(line.split(" +", 6)[4]))
          .findFirst()
          .orElseThrow(() -> new IOException("the mapping is missing in " + MAPPINGS));
    }
  }

  static String reason(Throwable e) {
    return e.getMessage() == null ? e.toString() : e.getMessage();
  }

  private static void agree(
      String label, long bytesPerRank, String outcome, Rendezvous rendezvous) {
    var outcomes = rendezvous.exchange(label, outcome);
    if (isOneFile(outcomes)) {
      return;
    }
    boolean allMapped = outcomes.stream().allMatch(SharedFile::isMapped);
    var failures =
        IntStream.range(0, outcomes.size())
            .filter(i -> allMapped || !isMapped(outcomes.get(i)))
            .mapToObj(i -> "rank %d: %s".formatted(rendezvous.ranks().get(i), outcomes.get(i)))
            .collect(Collectors.joining("; "));
    throw new AllocationFailed(
        allMapped
            ? "%s failed: its file in %s was replaced meanwhile, so ranks mapped different ones (%s); allocate again"
                .formatted(label, FOLDER, failures)
            : "%s needs %d bytes per rank in %s, where %d are free, and failed (%s); close what is not needed"
                .formatted(label, bytesPerRank, FOLDER, free(), failures));
  }

  /// Requires that the members on another host have all mapped one file there.
  ///
  /// @param ranks in the world, of those members
  public static void require(String label, List<Integer> ranks, List<String> outcomes) {
    if (isOneFile(outcomes)) {
      return;
    }
    throw new AllocationFailed(
        "%s failed on another host (%s); close what is not needed"
            .formatted(
                label,
                IntStream.range(0, outcomes.size())
                    .mapToObj(i -> "rank %d: %s".formatted(ranks.get(i), outcomes.get(i)))
                    .collect(Collectors.joining("; "))));
  }

  private static boolean isOneFile(List<String> outcomes) {
    return outcomes.stream().allMatch(SharedFile::isMapped)
        && outcomes.stream().distinct().count() == 1;
  }

  private static boolean isMapped(String outcome) {
    return outcome.startsWith(MAPPED);
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
