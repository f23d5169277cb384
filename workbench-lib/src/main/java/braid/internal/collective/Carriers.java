package braid.internal.collective;

import braid.Place;
import braid.Transport;
import braid.internal.backend.Backend;
import braid.internal.backend.Stream;
import braid.internal.rank.Closing;
import braid.internal.resource.PrivateMemory;
import braid.schedule.Lane;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The streams of collectives that go over one transport, and the memory in which they add up. They
/// are a group's own: no copy ever runs on the caller's thread or between other work of the rank.
final class Carriers implements AutoCloseable {
  /// What is added up goes in chunks of so many bytes: the next chunk is fetched while this one is
  /// added, and memory for it does not grow with the tensor.
  static final long CHUNK_BYTES = 1 << 20;

  /// Chunks that have room at once: one that comes and one that is added up.
  static final int ROOMS = 2;

  private final Backend backend;
  private final Place place;
  private final Deque<AutoCloseable> made = new ArrayDeque<>();
  private final Stream communication;
  private final Stream adder;
  private @Nullable PrivateMemory inbox;

  Carriers(Backend backend, Place place, Transport transport, int workers) {
    this.backend = backend;
    this.place = place;
    this.communication =
        keep(
            backend.stream(
                new Lane("comm", Lane.Role.COMMUNICATION, false, transport, workers, 0)));
    this.adder = keep(backend.stream(Lane.of("reduce", Lane.Role.COMPLETION)));
  }

  private Stream keep(Stream stream) {
    made.push(stream);
    return stream;
  }

  /// Moves bytes between ranks.
  Stream communication() {
    return communication;
  }

  /// Adds up what has come, and moves this rank's own bytes.
  Stream adder() {
    return adder;
  }

  List<Stream> streams() {
    return List.of(communication, adder);
  }

  /// Where that rank's part of a chunk comes to be added up. It is memory of this rank alone, since
  /// each rank fetches for itself.
  MemorySegment inbox(int chunk, int source, long bytes) {
    var memory = inbox;
    if (memory == null) {
      memory = backend.allocate(CHUNK_BYTES * ROOMS * place.size());
      inbox = memory;
      made.addLast(memory);
    }
    long room = (long) (chunk % ROOMS) * place.size() + source;
    return memory.segment().asSlice(room * CHUNK_BYTES, bytes);
  }

  @Override
  public void close() {
    Closing.all(made::poll);
  }
}
