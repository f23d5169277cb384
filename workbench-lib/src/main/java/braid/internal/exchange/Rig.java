package braid.internal.exchange;

import braid.ChunkOrder;
import braid.Method;
import braid.Overlap;
import braid.Place;
import braid.Priority;
import braid.Transport;
import braid.internal.backend.Backend;
import braid.internal.backend.Stream;
import braid.internal.rank.Closing;
import braid.internal.resource.SymmetricMemory;
import braid.internal.work.Lane;
import braid.internal.work.Work;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/// What an exchange and a multiplication are made of on this rank: memory, streams, and who the
/// others are. It is closed as a whole, the latest first.
public final class Rig implements AutoCloseable {
  /// Where memory that all ranks reach comes from. All of them ask for the same, in the same order.
  @FunctionalInterface
  public interface SymmetricSource {
    SymmetricMemory take(String label, long bytesPerRank);
  }

  public final Backend backend;
  public final Place place;

  /// The members' ranks in the world.
  public final List<Integer> ranks;

  /// What it is for, as messages call it.
  public final String what;

  public final Overlap how;
  private final SymmetricSource source;
  private final Deque<AutoCloseable> made = new ArrayDeque<>();
  private final List<Stream> streams = new ArrayList<>();
  private boolean spoiled;

  public Rig(
      Backend backend,
      Place place,
      List<Integer> ranks,
      String what,
      Overlap how,
      SymmetricSource source) {
    this.backend = backend;
    this.place = place;
    this.ranks = ranks;
    this.what = what;
    this.how = how;
    this.source = source;
  }

  /// Memory of this rank.
  public MemorySegment memory(long bytes) {
    return keep(backend.allocate(bytes)).segment();
  }

  /// Memory of all ranks.
  public SymmetricMemory symmetric(String name, long bytesPerRank) {
    var memory = source.take("%s: %s".formatted(what, name), bytesPerRank);
    var _ = keep(() -> end(memory));
    return memory;
  }

  private void end(SymmetricMemory memory) {
    if (spoiled) {
      memory.spoil();
    } else {
      memory.close();
    }
  }

  /// What it was made for broke off: ranks may be at different steps, and one of them may still
  /// write to the memory when another has closed it. So nobody is to use it again.
  public void spoil() {
    spoiled = true;
  }

  public <T extends AutoCloseable> T keep(T resource) {
    made.push(resource);
    return resource;
  }

  /// A stream that communicates.
  public Stream communication(String name) {
    return stream(
        new Lane(name, how.priority() == Priority.GEMM, how.transport(), how.workers(), 0));
  }

  /// A stream that ends what was communicated: it goes first where communication does.
  public Stream completion(String name) {
    return stream(new Lane(name, how.priority() == Priority.GEMM, Transport.COPY_ENGINE, 0, 0));
  }

  /// A stream that multiplies, with the compute units that communication leaves.
  public Stream computation(String name) {
    return stream(
        new Lane(
            name,
            how.priority() == Priority.COMMUNICATION,
            Transport.COPY_ENGINE,
            0,
            how.workers()));
  }

  private Stream stream(Lane lane) {
    var stream = keep(backend.stream(lane));
    streams.add(stream);
    return stream;
  }

  /// All streams, communication first: what it waits for is what people want to know.
  public List<Stream> streams() {
    return streams;
  }

  /// The other ranks in the order in which this one deals with them.
  public List<Integer> peers() {
    var peers = new ArrayList<Integer>();
    for (int i = 1; i < place.size(); i++) {
      peers.add(
          switch (how.order()) {
            case NEXT_FIRST -> (place.rank() + i) % place.size();
            case PREVIOUS_FIRST -> (place.rank() + place.size() - i) % place.size();
            case RANK_ORDER -> i - 1 < place.rank() ? i - 1 : i;
          });
    }
    return peers;
  }

  /// The rank that this one sends to in a ring. Round the other way, it is the previous one.
  public int next() {
    return Math.floorMod(place.rank() + direction(), place.size());
  }

  /// The rank that this one is sent to by in a ring.
  public int previous() {
    return Math.floorMod(place.rank() - direction(), place.size());
  }

  /// The rank that lies that many steps back in the ring.
  int back(int steps) {
    return Math.floorMod(place.rank() - steps * direction(), place.size());
  }

  /// The ranks in the order in which their parts of that owner's sum are added: a ring begins
  /// behind the owner and ends with it.
  public List<Integer> addingOrder(int owner) {
    boolean ring = how.method() == Method.RING;
    return IntStream.range(0, place.size())
        .map(i -> ring ? Math.floorMod(owner + (i + 1) * direction(), place.size()) : i)
        .boxed()
        .toList();
  }

  private int direction() {
    return how.order() == ChunkOrder.PREVIOUS_FIRST ? -1 : 1;
  }

  /// Work of no chunk.
  public Work work(Supplier<String> step) {
    return Work.of(() -> "%s of `%s`".formatted(step.get(), what));
  }

  public Work work(int chunk, Supplier<String> step) {
    return new Work(chunk, () -> "%s of `%s`".formatted(step.get(), what));
  }

  /// Undoes what was set up so far, because of that failure.
  public void undo(Throwable cause) {
    spoil();
    Closing.after(cause, this);
  }

  /// Frees everything, streams first. No rank waits for another: the peers keep their own views.
  @Override
  public void close() {
    if (spoiled) {
      var broken = List.copyOf(streams);
      made.push(() -> backend.rest(broken));
    }
    streams.clear();
    Closing.all(made::poll);
  }
}
