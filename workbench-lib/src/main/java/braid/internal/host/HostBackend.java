package braid.internal.host;

import braid.internal.backend.Backend;
import braid.internal.backend.Executable;
import braid.internal.backend.Stream;
import braid.internal.library.LibraryCollectives;
import braid.internal.rank.Env;
import braid.internal.rank.Once;
import braid.internal.rank.Waits;
import braid.internal.remote.Network;
import braid.internal.resource.FreeSpace;
import braid.internal.resource.Inspection;
import braid.internal.resource.PrivateMemory;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.internal.shared.ControlMemory;
import braid.internal.shared.FreeMemory;
import braid.internal.shared.SharedFile;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.internal.work.Precision;
import braid.model.Activity;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.HardwareReading;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Timing;
import braid.model.Transport;
import braid.schedule.Lane;
import braid.schedule.simulation.Machine;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/// The backend of ranks that are processes, or threads of one process: shared memory within a host,
/// one-sided transfers between hosts, OpenBLAS, and links of simulated speed.
public final class HostBackend implements Backend {
  private static final long ALIGNMENT_BYTES = 64;

  private final Env env;
  private final String token;
  private final Waits waits;
  private final Network network;
  private final CopyEngine engine;
  private volatile Link link;
  private final int gemmThreads;
  private final Cores cores;
  private final FreeMemory memory;
  private final Set<HostStream> streams = ConcurrentHashMap.newKeySet();

  public HostBackend(Env env, String token, Waits waits, Network network) {
    this.env = env;
    this.network = network;
    this.token = token;
    this.waits = waits;
    this.link = env.link();
    this.engine = new CopyEngine(link, waits);
    this.cores = Cores.of(env.local());
    this.memory = new FreeMemory(token, env.local(), waits);
    waits.watchDepartures(this::checkDeparted);
    this.gemmThreads = Math.max(1, Runtime.getRuntime().availableProcessors() / env.local().size());
  }

  @Override
  public BackendKind kind() {
    return BackendKind.HOST;
  }

  @Override
  public Timing timing() {
    return Timing.LATENCY;
  }

  @Override
  public int ranksPerDevice() {
    return 1;
  }

  @Override
  public String deviceName() {
    return Machine.host();
  }

  @Override
  public String link() {
    return link.toString();
  }

  @Override
  public void playLink(Link other) {
    link = other;
    engine.play(other);
  }

  @Override
  public MemoryKind resolve(MemoryKind requested) {
    return switch (requested) {
      case AUTO, NATIVE -> MemoryKind.NATIVE;
      case IPC, NCCL, NVSHMEM ->
          throw new BraidException(
              "memory kind %s needs CUDA but the backend is host; use native or auto"
                  .formatted(requested));
    };
  }

  @Override
  public Optional<String> missing(Transport transport) {
    return transport.isLibrary()
        ? Optional.of(
            "%s needs the cuda backend but the backend is host; use over(COPY_ENGINE)"
                .formatted(transport))
        : Optional.empty();
  }

  @Override
  public LibraryCollectives library(Transport library, Supplier<Rendezvous> rendezvous) {
    throw new BraidException(missing(library).orElseThrow());
  }

  @Override
  public void quiesce(List<Stream> together) {
    together.forEach(stream -> ((HostStream) stream).quiesce());
  }

  @Override
  public Stream stream(Lane lane) {
    var stream =
        new HostStream(
            env.world().rank(), lane, waits, engine, gemmThreads, cores, streams::remove);
    streams.add(stream);
    return stream;
  }

  @Override
  public SymmetricMemory allocate(
      MemoryKind kind, String label, long bytesPerRank, Rendezvous rendezvous) {
    resolve(kind);
    return network.spans(rendezvous.ranks())
        ? network.allocate(
            label,
            rendezvous,
            local -> SharedFile.allocate(token, label, bytesPerRank, local, memory))
        : SharedFile.allocate(token, label, bytesPerRank, rendezvous, memory);
  }

  @Override
  public List<FreeSpace> freeSpaces(MemoryKind kind, List<Integer> ranks) {
    int self = env.world().rank();
    var members =
        IntStream.range(0, ranks.size())
            .filter(i -> ranks.size() == 1 || network.hosts().share(self, ranks.get(i)))
            .boxed()
            .toList();
    return List.of(memory.space(members), SharedFile.space(members));
  }

  @Override
  public void zero(MemorySegment part) {
    part.fill((byte) 0);
  }

  @Override
  public ControlMemory control(String label, long bytesPerRank, Rendezvous rendezvous) {
    return network.control(token, label, bytesPerRank, rendezvous);
  }

  @Override
  public PrivateMemory allocate(long bytes) {
    var arena = Arena.ofShared();
    try {
      return new PrivateMemory(
          memory.take(bytes, () -> arena.allocate(bytes, ALIGNMENT_BYTES)),
          new Once(
              () -> {
                arena.close();
                memory.released(bytes);
              }));
    } catch (RuntimeException | Error e) {
      arena.close();
      throw e;
    }
  }

  @Override
  public Inspection access() {
    return HostAccess.HOST;
  }

  /// Returns ordinary memory: the device of this backend is the host.
  @Override
  public PrivateMemory pinned(long bytes) {
    return allocate(bytes);
  }

  @Override
  public Precision precision(DType input, DType weight) {
    return Precision.FP32;
  }

  @Override
  public Operand operand(Matrix source, DType left) {
    var dtype = source.dtype();
    return new Operand(
        source,
        left,
        dtype.isStoredAsFp32()
            ? Optional.empty()
            : Optional.of(allocate(source.segment().byteSize() / dtype.bytes() * Float.BYTES)));
  }

  @Override
  public Executable compile(List<Stream> streams, Runnable enqueue, boolean recorded) {
    return new HostExecutable(
        streams.stream().map(HostStream.class::cast).toList(), enqueue, recorded);
  }

  @Override
  public SequencedMap<String, Long> readings() {
    return new LinkedHashMap<>();
  }

  @Override
  public HardwareReading reading() {
    return HardwareReading.NONE;
  }

  /// Returns 0: spans are timed by the process's clock.
  @Override
  public long clockErrorNanos() {
    return 0;
  }

  @Override
  public List<Activity> unowned() {
    return List.of();
  }

  private void checkDeparted() {
    var departed = waits.departed();
    if (!departed.isEmpty()) {
      streams.forEach(stream -> stream.checkDeparted(departed));
    }
  }

  @Override
  public boolean awaits(int rank) {
    return streams.stream().anyMatch(stream -> stream.awaits(rank));
  }

  @Override
  public boolean isIdle() {
    return streams.stream().allMatch(HostStream::isIdle);
  }

  @Override
  public void quiesce() {
    streams.forEach(HostStream::quiesce);
  }

  @Override
  public void close() {
    List.copyOf(streams).forEach(HostStream::close);
    memory.close();
  }
}
