package braid.internal.backend;

import braid.internal.work.Work;
import braid.schedule.Lane;
import java.lang.foreign.MemorySegment;
import java.util.Comparator;

/// Messages between this rank and ranks of other hosts, whose memory it has no address of. A
/// library sends and receives them on streams of the GPU.
public interface Channels extends AutoCloseable {
  /// Messages of the steps of one lane that touch one rank of another host. Both ranks enqueue them
  /// in the same order, each on one stream.
  ///
  /// @param active rank of the group that runs the steps
  /// @param passive rank of the group that they touch
  record Channel(int active, String lane, int passive) implements Comparable<Channel> {
    private static final Comparator<Channel> ORDER =
        Comparator.comparingInt(Channel::active)
            .thenComparing(Channel::lane)
            .thenComparingInt(Channel::passive);

    /// Returns the lane of the passive rank.
    public Lane passiveLane() {
      return Lane.of("%s of rank %d".formatted(lane, active), Lane.Role.COMMUNICATION);
    }

    @Override
    public int compareTo(Channel other) {
      return ORDER.compare(this, other);
    }
  }

  /// Enqueues sending bytes to the channel's other rank; a message of no bytes only orders what
  /// follows it there.
  void send(Channel channel, MemorySegment bytes, Stream stream, Work work);

  /// Enqueues receiving as many bytes as the channel's other rank sends.
  void receive(Channel channel, MemorySegment bytes, Stream stream, Work work);

  /// Connects the ranks again, if a failure has ended their connections. All members of the group
  /// call it together.
  void connect();

  /// Aborts messages in flight, because ranks may be at different ones. Not usable until the next
  /// [#connect].
  void abort();

  /// Ends this rank's use, without waiting for other ranks.
  @Override
  void close();
}
