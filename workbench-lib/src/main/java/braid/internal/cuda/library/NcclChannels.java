package braid.internal.cuda.library;

import braid.internal.backend.Channels;
import braid.internal.backend.Stream;
import braid.internal.cuda.device.Communicators;
import braid.internal.cuda.device.Communicators.Policy;
import braid.internal.cuda.device.CudaDevice;
import braid.internal.cuda.device.SharedCommunicators;
import braid.internal.cuda.device.SharedCommunicators.Lease;
import braid.internal.library.LibraryCall;
import braid.internal.rank.Closing;
import braid.internal.rank.Waits;
import braid.internal.resource.Rendezvous;
import braid.internal.work.Work;
import braid.model.Stage;
import braid.natives.nccl.Nccl;
import braid.natives.nccl.NcclCommunicator;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SortedSet;
import java.util.function.Supplier;

/// Messages by NCCL's send and receive. Each channel has a communicator of its two ranks: NCCL runs
/// the calls of one communicator in order, so a call of another channel never waits behind one
/// whose sender is late.
///
/// Communicators of two ranks are connected when they are made, so no call waits for the host of
/// the other rank.
public final class NcclChannels implements Channels {
  private static final int ACTIVE = 0;

  private final CudaDevice device;
  private final Communicators communicators;
  private final Waits waits;
  private final SortedSet<Channel> channels;
  private final Supplier<Rendezvous> rendezvous;
  private final Map<Channel, End> ends = new HashMap<>();

  /// Two bytes: one that tokens are sent from, and one that they are received in.
  private final long token;

  private int epoch;

  /// This rank's end of a channel.
  ///
  /// @param other rank of the other end in the communicator
  private record End(Lease<NcclCommunicator> lease, int other) {
    NcclCommunicator communicator() {
      return lease.communicator();
    }
  }

  /// Collective: all ranks of the group call it together, with all of their channels.
  public NcclChannels(
      CudaDevice device,
      Communicators communicators,
      Waits waits,
      SortedSet<Channel> channels,
      Supplier<Rendezvous> rendezvous) {
    this.device = device;
    this.communicators = communicators;
    this.waits = waits;
    this.channels = channels;
    this.rendezvous = rendezvous;
    this.token = device.gpu().allocate(2);
    try {
      join();
    } catch (RuntimeException | Error e) {
      Closing.after(e, this);
      throw e;
    }
  }

  private void join() {
    var meeting = rendezvous.get();
    var ranks = meeting.ranks();
    int self = meeting.place().rank();
    var keys =
        channels.stream()
            .map(
                each ->
                    new SharedCommunicators.Key(
                        List.of(ranks.get(each.active()), ranks.get(each.passive())),
                        Policy.MULTIPROCESSORS,
                        each.lane()))
            .toList();
    var leases = communicators.lease(meeting, keys).iterator();
    for (var channel : channels) {
      if (channel.active() == self || channel.passive() == self) {
        ends.put(channel, new End(leases.next(), channel.active() == self ? 1 : ACTIVE));
      }
    }
    epoch = waits.epoch();
  }

  @Override
  public void connect() {
    if (epoch != waits.epoch()) {
      release();
      join();
    }
  }

  private End end(Channel channel) {
    return Objects.requireNonNull(ends.get(channel), () -> "no end of " + channel);
  }

  @Override
  public void send(Channel channel, MemorySegment bytes, Stream stream, Work work) {
    boolean empty = bytes.byteSize() == 0;
    long address = empty ? token : bytes.address();
    long count = Math.max(1, bytes.byteSize());
    enqueue(
        stream,
        work,
        bytes,
        queue -> {
          var end = end(channel);
          end.communicator().send(address, count, Nccl.Type.INT8, end.other(), queue);
        });
  }

  @Override
  public void receive(Channel channel, MemorySegment bytes, Stream stream, Work work) {
    boolean empty = bytes.byteSize() == 0;
    long address = empty ? token + 1 : bytes.address();
    long count = Math.max(1, bytes.byteSize());
    enqueue(
        stream,
        work,
        bytes,
        queue -> {
          var end = end(channel);
          end.communicator().receive(address, count, Nccl.Type.INT8, end.other(), queue);
        });
  }

  private static void enqueue(Stream stream, Work work, MemorySegment bytes, LibraryCall call) {
    stream.library(work, Stage.COPY, bytes.byteSize(), 0, call);
  }

  @Override
  public void abort() {
    var all = new ArrayDeque<AutoCloseable>();
    ends.values().forEach(end -> all.add(() -> communicators.abort(end.communicator())));
    Closing.all(all::poll);
  }

  private void release() {
    var all = new ArrayDeque<AutoCloseable>();
    ends.values().forEach(end -> all.add(end.lease()));
    ends.clear();
    Closing.all(all::poll);
  }

  @Override
  public void close() {
    Closing.each(
        this::release,
        () -> {
          device.gpu().use();
          device.gpu().free(token);
        });
  }
}
