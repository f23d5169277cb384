package braid.natives.profiling;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongUnaryOperator;

/// Decodes CUPTI's records into activities. Offsets are those of CUDA 13's `cupti_activity.h`;
/// later versions only append fields. A correlation id joins a record to its call, and that to the
/// external id pushed around the call. In a replayed graph the node identifies it.
final class ActivityRecords {
  static final int MEMCPY = 1;
  static final int MEMSET = 2;
  static final int DRIVER = 4;
  static final int RUNTIME = 5;
  static final int CONCURRENT_KERNEL = 10;
  static final int MEMCPY_PEER = 22;
  static final int EXTERNAL_CORRELATION = 39;

  /// Our choice among the kinds of external ids that CUPTI reserves for users.
  static final int EXTERNAL_KIND = 3;

  static final int KERNEL_BYTES = 176;
  static final int COPY_BYTES = 84;
  static final int PEER_COPY_BYTES = 92;
  static final int FILL_BYTES = 84;
  static final int EXTERNAL_BYTES = 24;

  private static final int COMPUTE_CHANNEL = 1;
  private static final int COPY_CHANNEL = 2;

  private final GraphNodes nodes;
  private final LongUnaryOperator clock;
  private final List<MemorySegment> activities = new ArrayList<>();
  private final Map<Integer, Long> externals = new HashMap<>();
  private final Map<Long, String> names = new HashMap<>();
  private long untimed;

  /// @param clock converts CUPTI's time to `System.nanoTime`'s
  ActivityRecords(GraphNodes nodes, LongUnaryOperator clock) {
    this.nodes = nodes;
    this.clock = clock;
  }

  /// Adds a record by its address. `all` decodes it, because a later record may tell its owner.
  @SuppressWarnings("restricted")
  void add(MemorySegment address) {
    var kind = address.reinterpret(Integer.BYTES).get(JAVA_INT, 0);
    switch (kind) {
      case CONCURRENT_KERNEL -> activities.add(address.reinterpret(KERNEL_BYTES));
      case MEMCPY -> activities.add(address.reinterpret(COPY_BYTES));
      case MEMCPY_PEER -> activities.add(address.reinterpret(PEER_COPY_BYTES));
      case MEMSET -> activities.add(address.reinterpret(FILL_BYTES));
      case EXTERNAL_CORRELATION -> addExternal(address.reinterpret(EXTERNAL_BYTES));
      default -> {} // a call's own record, only needed for its external id
    }
  }

  private void addExternal(MemorySegment record) {
    if (record.get(JAVA_INT, 4) == EXTERNAL_KIND) {
      externals.put(record.get(JAVA_INT, 16), record.get(JAVA_LONG, 8));
    }
  }

  /// Returns the activities in order of their start.
  List<Cupti.Activity> all() {
    var decoded = new ArrayList<Cupti.Activity>(activities.size());
    for (var record : activities) {
      if (record.get(JAVA_LONG, 16) == 0 && record.get(JAVA_LONG, 24) == 0) {
        untimed++;
      } else {
        decoded.add(activity(record));
      }
    }
    decoded.sort(Comparator.comparingLong(Cupti.Activity::startNanos));
    return List.copyOf(decoded);
  }

  /// Number of records without times; they are in no list.
  long untimed() {
    return untimed;
  }

  private Cupti.Activity activity(MemorySegment record) {
    return switch (record.get(JAVA_INT, 0)) {
      case CONCURRENT_KERNEL -> kernel(record);
      case MEMCPY -> copy(record);
      case MEMCPY_PEER -> peerCopy(record);
      default -> fill(record);
    };
  }

  private Cupti.Kernel kernel(MemorySegment record) {
    var node = record.get(JAVA_LONG, 144);
    return new Cupti.Kernel(
        correlation(record.get(JAVA_INT, 92), node, record.get(JAVA_INT, 156)),
        time(record, 16),
        time(record, 24),
        record.get(JAVA_INT, 48),
        names.computeIfAbsent(
            record.get(JAVA_LONG, 104), _ -> CuptiCalls.text(record.get(ADDRESS, 104))),
        // The grid, of three sizes.
        record.get(JAVA_INT, 52) * record.get(JAVA_INT, 56) * record.get(JAVA_INT, 60));
  }

  private Cupti.Copy copy(MemorySegment record) {
    return new Cupti.Copy(
        correlation(record.get(JAVA_INT, 44), record.get(JAVA_LONG, 64), record.get(JAVA_INT, 72)),
        time(record, 16),
        time(record, 24),
        record.get(JAVA_INT, 40),
        record.get(JAVA_LONG, 8),
        engine(record.get(JAVA_INT, 80), record.get(JAVA_INT, 76)),
        Byte.toUnsignedInt(record.get(JAVA_BYTE, 4)));
  }

  private Cupti.Copy peerCopy(MemorySegment record) {
    return new Cupti.Copy(
        correlation(record.get(JAVA_INT, 60), record.get(JAVA_LONG, 72), record.get(JAVA_INT, 80)),
        time(record, 16),
        time(record, 24),
        record.get(JAVA_INT, 40),
        record.get(JAVA_LONG, 8),
        engine(record.get(JAVA_INT, 88), record.get(JAVA_INT, 84)),
        Byte.toUnsignedInt(record.get(JAVA_BYTE, 4)));
  }

  private Cupti.Fill fill(MemorySegment record) {
    return new Cupti.Fill(
        correlation(record.get(JAVA_INT, 44), record.get(JAVA_LONG, 64), record.get(JAVA_INT, 72)),
        time(record, 16),
        time(record, 24),
        record.get(JAVA_INT, 40),
        record.get(JAVA_LONG, 8),
        engine(record.get(JAVA_INT, 80), record.get(JAVA_INT, 76)));
  }

  private Cupti.Correlation correlation(int id, long node, int graph) {
    var launch = externals.getOrDefault(id, GraphNodes.UNKNOWN);
    var owner = node == 0 ? launch : nodes.ownerOf(node);
    return new Cupti.Correlation(owner, launch, node, graph);
  }

  private long time(MemorySegment record, long offset) {
    return clock.applyAsLong(record.get(JAVA_LONG, offset));
  }

  static String engine(int channelType, int channel) {
    return switch (channelType) {
      case COMPUTE_CHANNEL -> "SMs (channel " + channel + ")";
      case COPY_CHANNEL -> "copy engine (channel " + channel + ")";
      default -> "unknown (channel " + channel + " of type " + channelType + ")";
    };
  }
}
