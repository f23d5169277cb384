package braid.internal.remote;

import braid.internal.work.Transfer;
import braid.natives.ucx.UcxPeer;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// Memory of a rank on another host, as this rank sees it: a range of addresses that no memory has.
/// A segment of it can be sliced but not read; [#move] copies from and to it. Every window of the
/// process has a range of its own, so that the address of a segment finds its window.
///
/// @param address first address of the range
/// @param bytes size of the range
/// @param rank in the world, whose memory it is
/// @param export number of the memory on that rank
/// @param remote its address on that rank
public record RemoteWindow(
    Network network,
    long address,
    long bytes,
    int rank,
    long export,
    long remote,
    UcxPeer.Memory memory) {
  /// No address of user space is that high, on any processor.
  private static final long FIRST_ADDRESS = 1L << 62;

  private static final long ALIGNMENT_BYTES = 4096;

  private static final AtomicLong FREE = new AtomicLong(FIRST_ADDRESS);
  private static final ConcurrentSkipListMap<Long, RemoteWindow> WINDOWS =
      new ConcurrentSkipListMap<>();

  /// Opens a window. Its addresses are never used again.
  static RemoteWindow open(
      Network network, long bytes, int rank, long export, long remote, UcxPeer.Memory memory) {
    var window = new RemoteWindow(network, range(bytes), bytes, rank, export, remote, memory);
    WINDOWS.put(window.address(), window);
    return window;
  }

  /// Returns a segment of the size of memory that no transfer reaches.
  @SuppressWarnings("restricted") // No memory is there.
  static MemorySegment placeholder(long bytes) {
    return MemorySegment.ofAddress(range(bytes)).reinterpret(bytes);
  }

  /// Takes a range of addresses.
  private static long range(long bytes) {
    return FREE.getAndAdd(Math.ceilDiv(bytes + 1, ALIGNMENT_BYTES) * ALIGNMENT_BYTES);
  }

  void close() {
    WINDOWS.remove(address);
    memory.close();
  }

  @SuppressWarnings("restricted") // No memory is there: only transfers reach it.
  MemorySegment segment() {
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  /// Returns whether the segment is memory of another host.
  public static boolean isRemote(MemorySegment segment) {
    return segment.address() >= FIRST_ADDRESS;
  }

  /// Returns the window of a segment; null if it is memory of this host.
  static @Nullable RemoteWindow find(MemorySegment segment) {
    if (!isRemote(segment)) {
      return null;
    }
    var entry = WINDOWS.floorEntry(segment.address());
    if (entry == null
        || segment.address() > entry.getValue().address() + entry.getValue().bytes()) {
      throw new IllegalStateException("memory of another host was closed before its last use");
    }
    return entry.getValue();
  }

  /// Copies bytes; one side may be memory of another host. Returns when they have arrived.
  ///
  /// @param description of the wait
  public static void move(Supplier<String> description, Transfer transfer) {
    if (transfer.bytes() == 0) {
      return;
    }
    var from = find(transfer.from());
    var target = find(transfer.to());
    if (from != null && target != null) {
      throw new IllegalStateException("a copy between two other hosts: " + description.get());
    }
    if (from != null) {
      from.network.fetch(description, from, transfer);
    } else if (target != null) {
      target.network.put(description, target, transfer);
    } else {
      transfer.move();
    }
  }

  /// Sets a signal in memory of another host.
  public static void raise(MemorySegment word, int epoch, int step) {
    var window = find(word);
    if (window == null) {
      throw new IllegalStateException("a signal of this host was raised as one of another");
    }
    window.network.send(
        window.rank,
        new Message.Raise(window.export, word.address() - window.address, epoch, step));
  }

  /// Returns the bytes of a transfer on either side.
  List<UcxPeer.Piece> pieces(
      MemorySegment local, long localPitch, MemorySegment far, long farPitch, Transfer transfer) {
    long first = remote + far.address() - address;
    return LongStream.range(0, transfer.rows())
        .mapToObj(
            row ->
                new UcxPeer.Piece(
                    local.address() + row * localPitch,
                    first + row * farPitch,
                    transfer.rowBytes()))
        .toList();
  }
}
