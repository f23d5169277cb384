package braid.export;

import braid.model.BraidException;
import braid.model.Collective;
import braid.schedule.Lane;
import braid.schedule.Schedule;
import braid.schedule.Step;
import braid.schedule.Step.After;
import braid.schedule.Step.Attend;
import braid.schedule.Step.AttendGradient;
import braid.schedule.Step.Copy;
import braid.schedule.Step.Gemm;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Merge;
import braid.schedule.Step.Move;
import braid.schedule.Step.Prepare;
import braid.schedule.Step.Recode;
import braid.schedule.Step.Reduce;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import braid.schedule.Step.Zero;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;

/// One iteration of a schedule as Chakra execution traces: for each rank a file of messages, each
/// with its length before it, first `GlobalMetadata` and then `Node`s (`et_def.proto` of
/// mlcommons/chakra 21585d8f).
///
/// A trace has messages with two ends, a schedule has copies by one rank. A push is a send, and a
/// receive of its target. A fetch is a request to the owner and the owner's answer. A signal is a
/// message of [#SIGNAL_BYTES], and a wait is its receive. So the traces have the order of the
/// schedule: the nodes of a lane follow each other, and other lanes where the schedule says so. All
/// order is in `data_deps`, because readers ignore `ctrl_deps`.
///
/// Nothing is measured: nodes have operations and bytes, and durations of 0.
public final class ChakraExport {
  /// Size of a signal, and of a request, which Chakra has as messages.
  public static final int SIGNAL_BYTES = 8;

  private static final String SCHEMA = "0.0.4";

  /// Fields of an attribute by the type of its value.
  private static final int INT32 = 7;

  private static final int INT64 = 9;
  private static final int UINT64 = 17;
  private static final int BOOL = 27;
  private static final int STRING = 29;

  private final Schedule schedule;
  private final String braid;
  private final List<RankTrace> traces = new ArrayList<>();

  /// By word, the receives that its signal announces.
  private final Map<String, Set<Long>> announced = new HashMap<>();

  /// Numbers of messages. Both ends of a message have the same.
  private final Map<String, Long> tags = new HashMap<>();

  private enum Kind {
    COMPUTE(4),
    SEND(5),
    RECEIVE(6),
    COLLECTIVE(7);

    private final int number;

    Kind(int number) {
      this.number = number;
    }
  }

  private record Node(long id, String name, Kind kind, Set<Long> needs, Map<String, Long> values) {}

  /// State of a lane: the nodes that the next one follows, and by target the receives of what this
  /// lane and those that it follows have pushed.
  private record Frontier(Set<Long> nodes, Map<Integer, Set<Long>> pushed) {
    Frontier() {
      this(new LinkedHashSet<>(), new HashMap<>());
    }

    void add(Frontier other) {
      nodes.addAll(other.nodes);
      other.pushed.forEach(this::push);
    }

    void push(int target, Set<Long> receives) {
      pushed.computeIfAbsent(target, _ -> new TreeSet<>()).addAll(receives);
    }

    void follow(Collection<Long> next) {
      nodes.clear();
      nodes.addAll(next);
    }
  }

  private ChakraExport(Schedule schedule, String braid) {
    this.schedule = schedule;
    this.braid = braid;
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      traces.add(new RankTrace(rank));
    }
    traces.forEach(RankTrace::read);
    traces.forEach(RankTrace::announce);
  }

  /// Returns the traces of a schedule.
  ///
  /// @param braid version of Braid, for the metadata
  /// @throws BraidException if the schedule is wrong
  public static ChakraExport of(Schedule schedule, String braid) {
    schedule.check();
    return new ChakraExport(schedule, braid);
  }

  public int ranks() {
    return traces.size();
  }

  /// Returns what the traces do not have.
  public List<String> omitted() {
    return List.of(
        "times: a schedule has none, so durations are 0",
        "lanes and streams: their order is in the dependencies",
        "priorities and transports: a trace has none",
        "signals, and requests of a fetch, are messages of %d bytes".formatted(SIGNAL_BYTES),
        "memory: a trace does not say which rows a step reads or writes");
  }

  /// Returns the file of a rank.
  public byte[] trace(int rank) {
    var file = new ByteArrayOutputStream();
    delimited(file, this::metadata);
    traces.get(rank).ordered().forEach(node -> delimited(file, message -> write(message, node)));
    return file.toByteArray();
  }

  /// Writes `NAME.RANK.et` for each rank.
  public void write(Path directory, String name) {
    try {
      for (int rank = 0; rank < ranks(); rank++) {
        Files.write(directory.resolve("%s.%d.et".formatted(name, rank)), trace(rank));
      }
    } catch (IOException e) {
      throw new BraidException(
          "traces must be written to %s but were not: %s; give a directory with space"
              .formatted(directory, e),
          e);
    }
  }

  private void metadata(ByteArrayOutputStream message) {
    text(message, 1, SCHEMA);
    attribute(message, 2, "schedule", schedule.name());
    attribute(
        message,
        2,
        "origin",
        "planned by Braid %s for %d ranks, not measured and not by Chakra"
            .formatted(braid, ranks()));
    omitted().forEach(each -> attribute(message, 2, "omitted", each));
  }

  private static void write(ByteArrayOutputStream message, Node node) {
    number(message, 1, node.id());
    text(message, 2, node.name());
    number(message, 3, node.kind().number);
    if (!node.needs().isEmpty()) {
      bytes(message, 5, packed(node.needs()));
    }
    new TreeMap<>(node.values()).forEach((name, value) -> attribute(message, 10, name, value));
    attribute(message, 10, "is_cpu_op", false);
  }

  /// Reads the steps of one rank.
  private final class RankTrace {
    private final int rank;
    private final List<Node> nodes = new ArrayList<>();

    private final Map<Lane, Frontier> frontiers = new HashMap<>();
    private final Map<Integer, Frontier> marks = new HashMap<>();

    /// Receives of words: a word is raised once per iteration, and several lanes may wait for it.
    private final Map<String, Long> received = new HashMap<>();

    RankTrace(int rank) {
      this.rank = rank;
    }

    void read() {
      for (var step : schedule.steps(rank)) {
        var frontier = frontiers.computeIfAbsent(step.lane(), _ -> new Frontier());
        switch (step) {
          case Copy copy -> copy(copy, frontier);
          case Gemm _, Reduce _, Attend _, AttendGradient _, Merge _, Recode _, Zero _, Prepare _ ->
              frontier.follow(
                  Set.of(
                      add(
                          step.text(),
                          Kind.COMPUTE,
                          frontier.nodes(),
                          Map.of("num_ops", operations(step), "tensor_size", size(step)))));
          case LibraryCall call -> frontier.follow(Set.of(collective(call, frontier.nodes())));
          case Signal signal -> signal(signal, frontier);
          case Wait wait -> await(wait, frontier);
          case Mark mark -> {
            var reached = new Frontier();
            reached.add(frontier);
            marks.put(mark.number(), reached);
          }
          case After after -> frontier.add(marks.getOrDefault(after.mark(), new Frontier()));
        }
      }
    }

    /// Lets the receive of each signal follow the receives of what was pushed before it: a signal
    /// is small, and must not overtake them.
    void announce() {
      received.forEach(
          (word, node) ->
              nodes
                  .get(Math.toIntExact(node))
                  .needs()
                  .addAll(announced.getOrDefault(word, Set.of())));
    }

    /// Returns the nodes, each after those that it needs.
    List<Node> ordered() {
      var all = new ArrayList<Node>();
      var listed = new HashSet<Long>();
      var open = new ArrayDeque<Node>();
      for (var node : nodes) {
        open.push(node);
        while (!open.isEmpty()) {
          var next = open.peek();
          var missing = next.needs().stream().filter(id -> !listed.contains(id)).findFirst();
          if (missing.isPresent()) {
            open.push(nodes.get(Math.toIntExact(missing.get())));
          } else {
            open.pop();
            if (listed.add(next.id())) {
              all.add(next);
            }
          }
        }
      }
      return all;
    }

    private long add(String name, Kind kind, Collection<Long> needs, Map<String, Long> values) {
      long id = nodes.size();
      nodes.add(new Node(id, name, kind, new TreeSet<>(needs), values));
      return id;
    }

    private String word(Signal signal) {
      return "%s[%d] %d>%d".formatted(signal.flag(), signal.index(), rank, signal.to());
    }

    private void signal(Signal signal, Frontier frontier) {
      var word = word(signal);
      announced.put(word, Set.copyOf(frontier.pushed().getOrDefault(signal.to(), Set.of())));
      frontier.follow(
          Set.of(send(frontier.nodes(), signal.text(), word, signal.to(), SIGNAL_BYTES)));
    }

    private void await(Wait wait, Frontier frontier) {
      var word = "%s[%d] %d>%d".formatted(wait.flag(), wait.index(), wait.from(), rank);
      var earlier = received.get(word);
      if (earlier == null) {
        long node = receive(frontier.nodes(), wait.text(), word, wait.from(), SIGNAL_BYTES);
        received.put(word, node);
        frontier.follow(Set.of(node));
      } else {
        frontier.nodes().add(earlier);
      }
    }

    /// The moves of a copy follow the lane, not each other.
    private void copy(Copy copy, Frontier frontier) {
      var ends = new ArrayList<Long>();
      for (var move : copy.moves()) {
        ends.add(move(move, frontier));
      }
      frontier.follow(ends);
    }

    private long move(Move move, Frontier frontier) {
      int source = move.from().rank();
      int target = move.to().rank();
      long size = move.from().bytes();
      var name = "copy of %s to %s".formatted(move.from(), move.to());
      if (source == target) {
        var values = Map.of("num_ops", 0L, "tensor_size", size);
        return add(name, Kind.COMPUTE, frontier.nodes(), values);
      }
      // One name per copy: a rank may copy the same region again.
      var message = "%s by %d, node %d".formatted(name, rank, nodes.size());
      if (source == rank) {
        frontier.push(
            target, Set.of(traces.get(target).receive(Set.of(), name, message, rank, size)));
        return send(frontier.nodes(), name, message, target, size);
      }
      var owner = traces.get(source);
      var request = "request of " + message;
      long asked = send(frontier.nodes(), request, request, source, SIGNAL_BYTES);
      long heard = owner.receive(Set.of(), request, request, rank, SIGNAL_BYTES);
      owner.send(Set.of(heard), name, message, target, size);
      if (target == rank) {
        return receive(Set.of(asked), name, message, source, size);
      }
      var end = "end of " + message;
      long landed = traces.get(target).receive(Set.of(), name, message, source, size);
      traces.get(target).send(Set.of(landed), end, end, rank, SIGNAL_BYTES);
      return receive(Set.of(asked), end, end, target, SIGNAL_BYTES);
    }

    private long send(Set<Long> needs, String name, String message, int target, long size) {
      return add(name, Kind.SEND, needs, ends(message, rank, target, size));
    }

    private long receive(Set<Long> needs, String name, String message, int source, long size) {
      return add(name, Kind.RECEIVE, needs, ends(message, source, rank, size));
    }

    private Map<String, Long> ends(String message, int source, int target, long size) {
      return Map.of(
          "comm_src",
          (long) source,
          "comm_dst",
          (long) target,
          "comm_tag",
          tags.computeIfAbsent(message, _ -> (long) tags.size()),
          "comm_size",
          size);
    }

    private long collective(LibraryCall call, Set<Long> needs) {
      return add(
          call.text(),
          Kind.COLLECTIVE,
          needs,
          Map.of(
              "comm_type",
              number(call.collective()),
              "comm_size",
              Math.max(call.x().bytes(), call.y().bytes())));
    }
  }

  private static long number(Collective collective) {
    return switch (collective) {
      case ALL_REDUCE -> 0;
      case ALL_GATHER -> 2;
      case BROADCAST -> 5;
      case ALL_TO_ALL -> 6;
      case REDUCE_SCATTER -> 7;
      case BARRIER -> 9;
      case SEND, RECEIVE -> throw new IllegalStateException("no library call " + collective);
    };
  }

  private static long operations(Step step) {
    return switch (step) {
      case Gemm gemm ->
          gemm.tiles().stream()
              .mapToLong(
                  tile ->
                      2 * tile.output().rows() * tile.output().columns() * tile.input().columns())
              .sum();
      case Reduce reduce ->
          (reduce.parts().size() - 1) * reduce.output().rows() * reduce.output().columns();
      // Two products for each pair of a query and a key, and five backward.
      case Attend attend -> Math.round(4 * pairs(attend));
      case AttendGradient gradient -> Math.round(10 * pairs(gradient.block()));
      case Merge _,
          Recode _,
          Zero _,
          Prepare _,
          Copy _,
          LibraryCall _,
          Signal _,
          Wait _,
          Mark _,
          After _ ->
          0;
    };
  }

  private static double pairs(Attend attend) {
    var spec = attend.spec();
    return attend.pairs() * spec.heads() * spec.headSize();
  }

  /// Returns the bytes that a step reads and writes.
  private static long size(Step step) {
    return step.accesses(0).stream().mapToLong(access -> access.region().bytes()).sum();
  }

  private static void delimited(
      ByteArrayOutputStream file, Consumer<ByteArrayOutputStream> content) {
    var message = new ByteArrayOutputStream();
    content.accept(message);
    varint(file, message.size());
    file.writeBytes(message.toByteArray());
  }

  /// Writes an `AttributeProto`, whose values have their types as field numbers: each as Chakra's
  /// own reader expects it, which takes a value of another type for 0.
  private static void attribute(
      ByteArrayOutputStream message, int field, String name, Object value) {
    var attribute = new ByteArrayOutputStream();
    text(attribute, 1, name);
    switch (value) {
      case Long number ->
          number(
              attribute,
              switch (name) {
                case "comm_src", "comm_dst", "comm_tag" -> INT32;
                case "tensor_size" -> UINT64;
                default -> INT64;
              },
              number);
      case Boolean flag -> number(attribute, BOOL, flag ? 1 : 0);
      default -> text(attribute, STRING, value.toString());
    }
    bytes(message, field, attribute.toByteArray());
  }

  private static byte[] packed(Collection<Long> numbers) {
    var packed = new ByteArrayOutputStream();
    numbers.forEach(each -> varint(packed, each));
    return packed.toByteArray();
  }

  private static void text(ByteArrayOutputStream message, int field, String value) {
    bytes(message, field, value.getBytes(StandardCharsets.UTF_8));
  }

  private static void bytes(ByteArrayOutputStream message, int field, byte[] value) {
    varint(message, (long) field << 3 | 2);
    varint(message, value.length);
    message.writeBytes(value);
  }

  private static void number(ByteArrayOutputStream message, int field, long value) {
    varint(message, (long) field << 3);
    varint(message, value);
  }

  /// Writes seven bits per byte, the lowest first; all but the last have the eighth bit.
  private static void varint(ByteArrayOutputStream message, long value) {
    long rest = value;
    while ((rest & ~0x7FL) != 0) {
      message.write((int) ((rest & 0x7F) | 0x80));
      rest >>>= 7;
    }
    message.write((int) rest);
  }
}
