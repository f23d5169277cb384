package braid.internal.shared;

import braid.internal.rank.Waits;
import braid.internal.resource.FreeSpace;
import braid.model.BraidException;
import braid.model.Place;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Grants host memory to the ranks of one machine. The kernel overcommits memory and kills some
/// process when it is used up, so requests for more than is available are refused here. The kernel
/// counts memory as used only once it is written: therefore ranks fill large allocations in turn,
/// under a lock, and each is checked against the memory that is left then.
public final class FreeMemory {
  private static final Path SOURCE = Path.of("/proc/meminfo");
  private static final String FIELD = "MemAvailable:";
  private static final long BYTES_PER_UNIT = 1024;

  /// Smaller requests are granted without a check.
  static final long CHECKED_BYTES = 64 << 20;

  private static final long POLL_NANOS = 1_000_000;

  private final Path file;
  private final Place local;
  private final Waits waits;
  private final LongSupplier availableBytes;

  /// Bytes granted to this rank and not released.
  private long heldBytes;

  private @Nullable FileChannel ledger;

  /// Creates the grants of one rank. `local` is its place among the ranks of its machine, which
  /// share the token.
  public FreeMemory(String token, Place local, Waits waits) {
    this(token, local, waits, FreeMemory::availableBytes);
  }

  FreeMemory(String token, Place local, Waits waits, LongSupplier availableBytes) {
    this.file = SharedFile.file(token, "memory");
    this.local = local;
    this.waits = waits;
    this.availableBytes = availableBytes;
  }

  /// Runs `fill`, which allocates that number of bytes and writes to all of them. Throws if the
  /// machine has fewer left.
  public <T> T take(long bytes, Supplier<T> fill) {
    if (bytes < CHECKED_BYTES) {
      return fill.get();
    }
    return takeChecked(bytes, fill);
  }

  private synchronized <T> T takeChecked(long bytes, Supplier<T> fill) {
    try {
      var ledger = ledger();
      try (var _ =
          waits.<FileLock>until(
              () -> "the other ranks of this machine to fill the memory that they requested",
              nanos -> lock(ledger, nanos))) {
        check(bytes, ledger);
        var filled = fill.get();
        hold(bytes, ledger);
        return filled;
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + file, e);
    }
  }

  /// Returns the machine's available memory, for some members of a group.
  public FreeSpace space(List<Integer> members) {
    return new FreeSpace(
        "this machine's memory", availableBytes.getAsLong(), members, SharedFile.PAGE_BYTES, 1);
  }

  /// Opens the ledger once and keeps it open: closing any channel of a file releases the process's
  /// locks on it, and a file that no process has open counts as left by a killed session.
  private FileChannel ledger() throws IOException {
    var open = ledger;
    if (open == null) {
      var onlyOwner =
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
      var options =
          Set.of(
              StandardOpenOption.CREATE,
              StandardOpenOption.READ,
              StandardOpenOption.WRITE,
              LinkOption.NOFOLLOW_LINKS);
      open = FileChannel.open(file, options, onlyOwner);
      ledger = open;
    }
    return open;
  }

  private static @Nullable FileLock lock(FileChannel channel, long nanos) {
    try {
      var lock = channel.tryLock();
      if (lock != null) {
        return lock;
      }
    } catch (OverlappingFileLockException e) {
      // Another rank of this process has it.
    } catch (IOException e) {
      throw new UncheckedIOException("cannot lock memory of the host", e);
    }
    LockSupport.parkNanos(Math.min(nanos, POLL_NANOS));
    return null;
  }

  private void check(long bytes, FileChannel channel) throws IOException {
    long available = availableBytes.getAsLong();
    if (bytes > available) {
      var held = held(channel);
      long together = bytes + Arrays.stream(held).sum();
      throw new BraidException(
          "%d bytes were requested but %d are available; the ranks of this machine hold %s and would hold %d together; take a smaller problem or fewer ranks"
              .formatted(
                  bytes,
                  available,
                  Arrays.stream(held).mapToObj(Long::toString).collect(Collectors.joining(" + ")),
                  together));
    }
  }

  /// Bytes held, by rank of the machine.
  private long[] held(FileChannel channel) throws IOException {
    var all = ByteBuffer.allocate(local.size() * Long.BYTES);
    int read = 0;
    for (int more = 0; more >= 0 && all.hasRemaining(); more = channel.read(all, read)) {
      read += more;
    }
    all.rewind();
    var held = new long[local.size()];
    all.asLongBuffer().get(held);
    return held;
  }

  private void hold(long bytes, FileChannel channel) throws IOException {
    heldBytes += bytes;
    var mine = ByteBuffer.allocate(Long.BYTES).putLong(0, heldBytes);
    long start = (long) local.rank() * Long.BYTES;
    while (mine.hasRemaining()) {
      channel.write(mine, start + mine.position());
    }
  }

  /// Notes that memory granted by [#take] is free again.
  public synchronized void released(long bytes) {
    var open = ledger;
    if (bytes < CHECKED_BYTES || open == null) {
      return;
    }
    try {
      hold(-bytes, open);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + file, e);
    }
  }

  /// Removes the ranks' shared ledger.
  public synchronized void close() {
    try (var _ = ledger) {
      ledger = null;
      Files.deleteIfExists(file);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot remove " + file, e);
    }
  }

  private static long availableBytes() {
    try (var lines = Files.lines(SOURCE)) {
      return lines
          .filter(line -> line.startsWith(FIELD))
          .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) * BYTES_PER_UNIT)
          .findFirst()
          .orElse(Long.MAX_VALUE);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + SOURCE, e);
    }
  }
}
