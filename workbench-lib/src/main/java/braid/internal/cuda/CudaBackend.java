package braid.internal.cuda;

import braid.internal.backend.Backend;
import braid.internal.backend.Channels;
import braid.internal.backend.Channels.Channel;
import braid.internal.backend.Executable;
import braid.internal.backend.Stream;
import braid.internal.cuda.device.Communicators;
import braid.internal.cuda.device.CudaDevice;
import braid.internal.cuda.device.DeviceAccess;
import braid.internal.cuda.device.OperandForms;
import braid.internal.cuda.library.CublasMpProducts;
import braid.internal.cuda.library.NcclChannels;
import braid.internal.cuda.library.NcclCollectives;
import braid.internal.cuda.library.NvshmemCollectives;
import braid.internal.cuda.memory.CudaMemory;
import braid.internal.library.LibraryCollectives;
import braid.internal.rank.Closing;
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
import braid.natives.blaslt.Lt;
import braid.natives.cublasmp.CublasMp;
import braid.natives.cuda.Gpu;
import braid.schedule.Lane;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.SortedSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/// The backend of a rank with its own GPU: work is enqueued on CUDA streams, memory is the
/// device's, links are those between GPUs.
public final class CudaBackend implements Backend {
  private final String token;
  private final Waits waits;
  private final Network network;
  private final CudaDevice device;
  private final Communicators communicators;
  private final CudaMemory memory;
  private final DeviceAccess access;
  private final WorkerCopies workerCopies;
  private final Recorder recorder;
  private final NvmlReadings nvml;
  private final Map<StreamKey, CudaStream.SharedStream> sharedStreams = new HashMap<>();
  private final Set<CudaStream> streams = ConcurrentHashMap.newKeySet();
  private final Set<CudaGraphs> graphs = ConcurrentHashMap.newKeySet();

  /// Key of the lanes that share a stream.
  private record StreamKey(String name, boolean yielding) {}

  private CudaBackend(Env env, String token, Waits waits, Network network, CudaDevice device) {
    this.token = token;
    this.waits = waits;
    this.network = network;
    this.device = device;
    this.communicators = new Communicators(device, waits, env.timeout());
    this.memory = new CudaMemory(device, env, token, waits, communicators);
    this.access = new DeviceAccess(device);
    this.workerCopies = new WorkerCopies(device.kernels(), env.bulkCopies());
    this.recorder = new Recorder(device.gpu());
    this.nvml = new NvmlReadings(device.gpu().pciBusId());
    waits.watchDepartures(this::checkDeparted);
  }

  /// Opens this rank's GPU, selected by its rank on this machine.
  public static CudaBackend open(Env env, String token, Waits waits, Network network) {
    return new CudaBackend(env, token, waits, network, CudaDevice.open(env));
  }

  @Override
  public BackendKind kind() {
    return BackendKind.CUDA;
  }

  @Override
  public Timing timing() {
    return Timing.BACK_TO_BACK;
  }

  @Override
  public int ranksPerDevice() {
    return device.ranks();
  }

  @Override
  public String deviceName() {
    return device.gpu().name();
  }

  @Override
  public String link() {
    return Gpu.count() == 1 ? "within the GPU" : nvml.links();
  }

  @Override
  public void playLink(Link other) {
    throw new BraidException(
        "a link of %s cannot be simulated: the cuda backend uses the GPUs' own links; remove playLink, or use the host backend"
            .formatted(other));
  }

  @Override
  public MemoryKind resolve(MemoryKind requested) {
    return memory.resolve(requested);
  }

  @Override
  public Inspection access() {
    return access;
  }

  @Override
  public Optional<String> missing(Transport transport) {
    return switch (transport) {
      case COPY_ENGINE, WORKERS, ONE_KERNEL -> Optional.empty();
      case NCCL_KERNELS -> CudaMemory.missingNccl();
      case NCCL_COPY_ENGINE, NCCL_SYMMETRIC -> memory.missing(MemoryKind.NCCL);
      case NVSHMEM_PUTS -> memory.missing(MemoryKind.NVSHMEM);
      case CUBLASMP -> memory.missing(MemoryKind.NCCL).or(CublasMp::missing);
    };
  }

  @Override
  public LibraryCollectives library(Transport library, Supplier<Rendezvous> rendezvous) {
    var reason = missing(library);
    if (reason.isPresent()) {
      throw new BraidException(
          "%s is not available: %s; use over(COPY_ENGINE)".formatted(library, reason.get()));
    }
    device.gpu().use();
    Supplier<Rendezvous> meeting = () -> communicators.closingUnused(rendezvous.get());
    return switch (library) {
      case COPY_ENGINE, WORKERS, ONE_KERNEL ->
          throw new IllegalArgumentException(library + " is no library");
      case NCCL_KERNELS -> nccl(Communicators.Policy.MULTIPROCESSORS, meeting);
      case NCCL_COPY_ENGINE -> nccl(Communicators.Policy.COPY_ENGINES, meeting);
      case NCCL_SYMMETRIC -> nccl(Communicators.Policy.WINDOWS, meeting);
      case CUBLASMP -> new CublasMpProducts(communicators, waits, meeting);
      case NVSHMEM_PUTS -> {
        var members = meeting.get();
        yield new NvshmemCollectives(memory.nvshmem(members), members.place(), members.ranks());
      }
    };
  }

  private NcclCollectives nccl(Communicators.Policy policy, Supplier<Rendezvous> meeting) {
    return new NcclCollectives(communicators, waits, policy, meeting);
  }

  @Override
  public Optional<List<Integer>> separateHosts(List<Integer> ranks) {
    return network.spans(ranks)
        ? Optional.of(ranks.stream().map(network.hosts()::number).toList())
        : Optional.empty();
  }

  @Override
  public Channels channels(SortedSet<Channel> channels, Supplier<Rendezvous> rendezvous) {
    device.gpu().use();
    return new NcclChannels(
        device,
        communicators,
        waits,
        channels,
        () -> communicators.closingUnused(rendezvous.get()));
  }

  @Override
  public synchronized Stream stream(Lane lane) {
    var gpu = device.gpu();
    gpu.use();
    var sharedStream =
        sharedStreams.computeIfAbsent(
            new StreamKey(lane.name(), lane.yielding()),
            key ->
                new CudaStream.SharedStream(
                    gpu.stream(key.yielding() ? gpu.leastPriority() : gpu.greatestPriority()),
                    gpu.allocate(Lt.WORKSPACE_BYTES)));
    var stream =
        new CudaStream(lane, device, sharedStream, waits, workerCopies, recorder, streams::remove);
    streams.add(stream);
    return stream;
  }

  @Override
  public void quiesce(List<Stream> together) {
    device.gpu().use();
    var streams = together.stream().map(CudaStream.class::cast).toList();
    streams.forEach(CudaStream::stopRecording);
    GpuIdle.await(
        device.gpu(),
        () -> streams.stream().allMatch(each -> each.gpu().isDone()),
        () -> streams.forEach(each -> each.awaited().unblock()));
  }

  @Override
  public Executable compile(List<Stream> streams, Runnable enqueue, boolean recorded) {
    var program = CudaExecutable.of(streams.stream().map(CudaStream.class::cast).toList(), enqueue);
    if (!recorded) {
      return program;
    }
    var graph = new CudaGraphs(device, waits, program, graphs::remove);
    graphs.add(graph);
    return graph;
  }

  @Override
  public SymmetricMemory allocate(
      MemoryKind kind, String label, long bytesPerRank, Rendezvous rendezvous) {
    device.gpu().use();
    var resolved = resolve(kind);
    var closing = communicators.closingUnused(rendezvous);
    return network.spans(rendezvous.ranks())
        ? network.allocateApart(
            label,
            closing,
            CudaMemory::isFailure,
            near -> memory.allocate(resolved, label, bytesPerRank, near))
        : memory.allocate(resolved, label, bytesPerRank, closing);
  }

  @Override
  public List<FreeSpace> freeSpaces(MemoryKind kind, List<Integer> ranks) {
    device.gpu().use();
    return memory.freeSpaces(kind, ranks);
  }

  @Override
  public void zero(MemorySegment part) {
    device.gpu().use();
    memory.zero(part);
  }

  @Override
  public ControlMemory control(String label, long bytesPerRank, Rendezvous rendezvous) {
    return network.control(token, label, bytesPerRank, rendezvous);
  }

  @Override
  public PrivateMemory allocate(long bytes) {
    var gpu = device.gpu();
    gpu.use();
    // The driver refuses to allocate 0 bytes.
    long address = gpu.allocate(Math.max(bytes, 1));
    try {
      gpu.fill(address, (byte) 0, Math.max(bytes, 1));
    } catch (RuntimeException | Error e) {
      Closing.after(e, () -> gpu.free(address));
      throw e;
    }
    return owned(address, bytes, () -> gpu.free(address));
  }

  @Override
  public PrivateMemory pinned(long bytes) {
    var gpu = device.gpu();
    gpu.use();
    long address = gpu.allocatePinned(Math.max(bytes, 1));
    return owned(address, bytes, () -> gpu.freePinned(address));
  }

  private PrivateMemory owned(long address, long bytes, Runnable free) {
    var arena = Arena.ofShared();
    return new PrivateMemory(
        CudaDevice.view(address, bytes, arena),
        new Once(
            () -> {
              arena.close();
              device.gpu().use();
              free.run();
            }));
  }

  /// Returns this rank's GPU.
  public CudaDevice device() {
    return device;
  }

  @Override
  public Precision precision(DType input, DType weight) {
    if (input == DType.TF32 && weight == DType.TF32) {
      return Precision.TF32;
    }
    // A pair that tensor cores do not take in fp8 is multiplied as fp16, which is exact.
    return OperandForms.isFp8Pair(input, weight) ? Precision.FP8 : Precision.TENSOR_CORE;
  }

  @Override
  public Operand operand(Matrix source, DType left) {
    long bytes = OperandForms.formBytes(source, left);
    return new Operand(source, left, bytes == 0 ? Optional.empty() : Optional.of(allocate(bytes)));
  }

  private void checkDeparted() {
    var departed = waits.departed();
    if (!departed.isEmpty()) {
      device.gpu().use();
      streams.forEach(stream -> stream.checkDeparted(departed));
    }
  }

  @Override
  public boolean awaits(int rank) {
    device.gpu().use();
    return streams.stream().anyMatch(stream -> stream.awaits(rank));
  }

  @Override
  public boolean isIdle() {
    device.gpu().use();
    return allDone();
  }

  @Override
  public void quiesce() {
    // First, since a call that hangs in NCCL keeps its stream busy.
    Closing.each(
        communicators::abort,
        () ->
            GpuIdle.await(
                device.gpu(),
                this::allDone,
                () -> streams.forEach(stream -> stream.awaited().unblock())),
        () -> streams.forEach(stream -> stream.settled(0)));
  }

  private synchronized boolean allDone() {
    return sharedStreams.values().stream().allMatch(each -> each.stream().isDone());
  }

  @Override
  public SequencedMap<String, Long> readings() {
    var readings = nvml.readings();
    readings.putAll(device.choices());
    if (recorder.dropped() > 0) {
      readings.put("records dropped", recorder.dropped());
    }
    return readings;
  }

  @Override
  public HardwareReading reading() {
    return nvml.reading();
  }

  @Override
  public long clockErrorNanos() {
    return recorder.clockErrorNanos();
  }

  @Override
  public List<Activity> unowned() {
    return recorder.unowned();
  }

  Recorder recorder() {
    return recorder;
  }

  @Override
  public void close() {
    var parts = new ArrayDeque<AutoCloseable>();
    parts.add(device.gpu()::use);
    parts.addAll(graphs);
    parts.addAll(streams);
    parts.addAll(List.of(communicators, memory, access, recorder));
    for (var each : sharedStreams.values()) {
      parts.add(each.stream());
      parts.add(() -> device.gpu().free(each.workspace()));
    }
    sharedStreams.clear();
    parts.add(device);
    Closing.all(parts::poll);
  }
}
