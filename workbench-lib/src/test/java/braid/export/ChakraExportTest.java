package braid.export;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.selftest.PipelineCases;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Transport;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ChakraExportTest {
  private static final int COMPUTE = 4;
  private static final int SEND = 5;
  private static final int RECEIVE = 6;
  private static final int COLLECTIVE = 7;

  /// The field of each attribute that the reader of Chakra (`et_feeder_node.cpp`) looks at: int32,
  /// int64, uint64 or bool.
  private static final Map<String, Integer> TYPES =
      Map.of(
          "comm_src", 7,
          "comm_dst", 7,
          "comm_tag", 7,
          "comm_size", 9,
          "comm_type", 9,
          "num_ops", 9,
          "tensor_size", 17,
          "is_cpu_op", 27);

  @TempDir Path directory;

  /// A node as a reader of the definition finds it.
  private record Node(
      long id, String name, long type, List<Long> needs, Map<String, Object> values) {
    long value(String key) {
      return (Long) values.getOrDefault(key, -1L);
    }

    /// Names the message that it is one end of.
    String message() {
      return "%d>%d #%d, %d bytes"
          .formatted(value("comm_src"), value("comm_dst"), value("comm_tag"), value("comm_size"));
    }
  }

  /// Reads the wire format of protobuf: fields by number, each with its values in order.
  private static Map<Integer, List<Object>> fields(ByteBuffer message) {
    var fields = new HashMap<Integer, List<Object>>();
    while (message.hasRemaining()) {
      long key = varint(message);
      Object value =
          switch ((int) (key & 7)) {
            case 0 -> varint(message);
            case 2 -> {
              var bytes = new byte[Math.toIntExact(varint(message))];
              message.get(bytes);
              yield bytes;
            }
            default -> throw new AssertionError("wire type of " + key);
          };
      fields.computeIfAbsent((int) (key >>> 3), _ -> new ArrayList<>()).add(value);
    }
    return fields;
  }

  private static long varint(ByteBuffer bytes) {
    long value = 0;
    for (int shift = 0; ; shift += 7) {
      byte next = bytes.get();
      value |= (next & 0x7FL) << shift;
      if (next >= 0) {
        return value;
      }
    }
  }

  private static List<Object> field(Map<Integer, List<Object>> fields, int number) {
    return fields.getOrDefault(number, List.of());
  }

  private static String text(Object bytes) {
    return new String((byte[]) bytes, StandardCharsets.UTF_8);
  }

  private static List<Map<Integer, List<Object>>> messages(byte[] file) {
    var buffer = ByteBuffer.wrap(file);
    var messages = new ArrayList<Map<Integer, List<Object>>>();
    while (buffer.hasRemaining()) {
      var bytes = new byte[Math.toIntExact(varint(buffer))];
      buffer.get(bytes);
      messages.add(fields(ByteBuffer.wrap(bytes)));
    }
    return messages;
  }

  private static Map<String, Object> attributes(List<Object> all) {
    var values = new HashMap<String, Object>();
    for (var each : all) {
      var fields = fields(ByteBuffer.wrap((byte[]) each));
      var name = text(field(fields, 1).getFirst());
      if (fields.containsKey(29)) {
        values.merge(name, text(fields.get(29).getFirst()), (a, b) -> a + "; " + b);
      } else {
        values.put(name, field(fields, TYPES.getOrDefault(name, -1)).getFirst());
      }
    }
    return values;
  }

  private static List<Node> nodes(ChakraExport export, int rank) {
    return messages(export.trace(rank)).stream()
        .skip(1)
        .map(
            fields -> {
              var needs = new ArrayList<Long>();
              for (var packed : fields.getOrDefault(5, List.of())) {
                var buffer = ByteBuffer.wrap((byte[]) packed);
                while (buffer.hasRemaining()) {
                  needs.add(varint(buffer));
                }
              }
              return new Node(
                  (Long) fields.getOrDefault(1, List.of(0L)).getFirst(),
                  text(field(fields, 2).getFirst()),
                  (Long) field(fields, 3).getFirst(),
                  needs,
                  attributes(field(fields, 10)));
            })
        .toList();
  }

  private static Stream<Schedule> schedules() {
    var gemms =
        Stream.of(
                GemmSpec.allGatherGemm(120, 60, 30),
                GemmSpec.gemmReduceScatter(120, 30, 60),
                GemmSpec.gemmAllReduce(120, 30, 60),
                GemmSpec.besideAllGather(60, 30, 20, 240),
                GemmSpec.besideReduceScatter(60, 30, 20, 240))
            .flatMap(
                spec ->
                    Stream.of(Method.values())
                        .filter(method -> method.unsupported(spec.pattern()).isEmpty())
                        .flatMap(
                            method ->
                                Stream.of(2, 3, 5)
                                    .map(
                                        ranks ->
                                            Schedule.of(
                                                spec,
                                                PipelineCases.tuning(method, 2, ranks),
                                                ranks))));
    var attention = AttentionSpec.of(64, 4, 8).causal();
    var others =
        Stream.of(
            Schedule.of(attention, ContextParallel.ring(), 4),
            Schedule.of(attention, ContextParallel.ulysses(), 4),
            Schedule.of(attention.backward(), ContextParallel.ring(), 2));
    return Stream.concat(gemms, others);
  }

  @ParameterizedTest
  @MethodSource("schedules")
  void everyNodeRunsAndEveryMessageArrives(Schedule schedule) {
    var export = ChakraExport.of(schedule, "0.1.0");
    var waiting = new ArrayList<List<Node>>();
    for (int rank = 0; rank < export.ranks(); rank++) {
      var nodes = nodes(export, rank);
      var known = new HashSet<Long>();
      for (var node : nodes) {
        assertThat(known).as(node.toString()).containsAll(node.needs());
        assertThat(known.add(node.id())).isTrue();
      }
      waiting.add(new ArrayList<>(nodes));
    }
    var ends = new HashMap<String, List<Long>>();
    waiting.stream()
        .flatMap(List::stream)
        .filter(node -> node.type() == SEND || node.type() == RECEIVE)
        .forEach(
            node -> ends.computeIfAbsent(node.message(), _ -> new ArrayList<>()).add(node.type()));
    assertThat(ends.values()).allMatch(types -> Set.copyOf(types).size() == 2 && types.size() == 2);
    assertThat(run(waiting)).isEmpty();
  }

  /// Runs the traces, with a receive after its send, and returns what cannot run.
  private static List<Node> run(List<List<Node>> waiting) {
    var done = waiting.stream().map(_ -> new HashSet<Long>()).toList();
    var sent = new HashSet<String>();
    boolean progress = true;
    while (progress) {
      progress = false;
      for (int rank = 0; rank < waiting.size(); rank++) {
        var finished = done.get(rank);
        for (var node : List.copyOf(waiting.get(rank))) {
          boolean ready = finished.containsAll(node.needs());
          if (ready && (node.type() != RECEIVE || sent.contains(node.message()))) {
            finished.add(node.id());
            waiting.get(rank).remove(node);
            if (node.type() == SEND) {
              sent.add(node.message());
            }
            progress = true;
          }
        }
      }
    }
    return waiting.stream().flatMap(List::stream).toList();
  }

  @ParameterizedTest
  @MethodSource("schedules")
  void theTracesMultiplyAndCommunicateAsMuchAsTheProblem(Schedule schedule) {
    if (!(schedule.goal() instanceof Goal.Solution solution)
        || !(solution.problem() instanceof GemmSpec spec)) {
      return;
    }
    int ranks = schedule.ranks();
    var export = ChakraExport.of(schedule, "0.1.0");
    double share = spec.pattern().beside() ? spec.flops() : spec.flops() / ranks;
    for (int rank = 0; rank < ranks; rank++) {
      var nodes = nodes(export, rank);
      long multiplied =
          nodes.stream()
              .filter(node -> node.type() == COMPUTE && node.name().startsWith("gemm"))
              .mapToLong(node -> node.value("num_ops"))
              .sum();
      assertThat((double) multiplied).isEqualTo(share);
      long received =
          nodes.stream()
              .filter(node -> node.type() == RECEIVE && node.name().startsWith("copy"))
              .mapToLong(node -> node.value("comm_size"))
              .sum();
      long others = ranks - 1L;
      long bytes =
          switch (spec.pattern()) {
            case ALL_GATHER_GEMM -> 4L * spec.m() * spec.k() / ranks * others;
            case GEMM_REDUCE_SCATTER -> 4L * spec.m() * spec.n() / ranks * others;
            // In one shot: every rank sends its whole product to all others.
            case GEMM_ALL_REDUCE ->
                4L * spec.m() * spec.n() * others * (isDirect(solution) ? ranks : 2) / ranks;
            case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER ->
                4L * spec.besideElements() / ranks * others;
          };
      assertThat(received).isEqualTo(bytes);
    }
  }

  private static boolean isDirect(Goal.Solution solution) {
    return solution.tuning().orElseThrow() instanceof Overlap overlap
        && overlap.method() == Method.DIRECT;
  }

  /// One fetch: the request, the answer, and the multiplication after it; and the signals that
  /// begin and end the exchange.
  @Test
  void aFetchIsARequestAndItsAnswer() {
    var schedule =
        Schedule.of(GemmSpec.allGatherGemm(4, 2, 3).dtype(DType.BF16), Overlap.direct(), 2);
    var nodes = nodes(ChakraExport.of(schedule, "0.1.0"), 0);
    var answer =
        nodes.stream()
            .filter(node -> node.type() == RECEIVE && node.name().startsWith("copy"))
            .toList();
    assertThat(answer).hasSize(1);
    assertThat(answer.getFirst().value("comm_src")).isEqualTo(1);
    assertThat(answer.getFirst().value("comm_dst")).isZero();
    assertThat(answer.getFirst().value("comm_size")).isEqualTo(2 * 3 * 2);
    var request = node(nodes, answer.getFirst().needs().getFirst());
    assertThat(request.type()).isEqualTo(SEND);
    assertThat(request.name()).startsWith("request of copy of input@1[0..1] to ");
    var begun = node(nodes, request.needs().getFirst());
    assertThat(begun.name()).isEqualTo("wait for begun[1] from rank 1");
    var multiplied =
        nodes.stream().filter(node -> node.needs().contains(answer.getFirst().id())).toList();
    assertThat(multiplied).extracting(Node::name).anyMatch(name -> name.startsWith("gemm to outp"));
    var answered =
        nodes.stream()
            .filter(node -> node.type() == SEND && node.name().startsWith("copy"))
            .collect(Collectors.toList());
    assertThat(answered).hasSize(1);
    assertThat(node(nodes, answered.getFirst().needs().getFirst()).name())
        .startsWith("request of copy of input@0[0..1]");
  }

  private static Node node(List<Node> nodes, long id) {
    return nodes.stream().filter(each -> each.id() == id).findFirst().orElseThrow();
  }

  /// A signal is smaller than the data that it announces, and must not overtake them.
  @Test
  void aSignalFollowsTheCopyBeforeIt() {
    var spec = GemmSpec.gemmReduceScatter(4, 2, 4);
    var nodes = nodes(ChakraExport.of(Schedule.of(spec, Overlap.direct(), 2), "0.1.0"), 0);
    var pushed =
        nodes.stream()
            .filter(node -> node.type() == RECEIVE && node.name().startsWith("copy"))
            .toList();
    assertThat(pushed).hasSize(1);
    assertThat(nodes)
        .filteredOn(node -> node.needs().contains(pushed.getFirst().id()))
        .isNotEmpty()
        .allMatch(node -> node.name().startsWith("wait for "));
  }

  @Test
  void aLibrarysCollectiveIsOneNode() {
    var builder = Schedule.on("gathered", 2);
    var x = builder.symmetric("x", DType.FP32, 4, 2);
    var y = builder.symmetric("y", DType.FP32, 8, 2);
    var lane = builder.add(Lane.of("comm", Transport.NCCL_KERNELS));
    var schedule =
        builder
            .given("x", x::on)
            .made("y", y::on)
            .steps(
                program -> {
                  int me = program.rank();
                  program.call(
                      new Step.LibraryCall(
                          lane,
                          Step.NO_CHUNK,
                          Collective.ALL_GATHER,
                          x.on(me),
                          y.on(me),
                          0,
                          false));
                });
    var nodes = nodes(ChakraExport.of(schedule, "0.1.0"), 1);
    assertThat(nodes).hasSize(1);
    assertThat(nodes.getFirst().type()).isEqualTo(COLLECTIVE);
    assertThat(nodes.getFirst().value("comm_type")).isEqualTo(2);
    assertThat(nodes.getFirst().value("comm_size")).isEqualTo(8 * 2 * 4);
  }

  @Test
  void theMetadataNamesOriginAndOmissions() throws IOException {
    var export =
        ChakraExport.of(Schedule.of(GemmSpec.allGatherGemm(4, 2, 3), Overlap.ring(), 2), "0.1.0");
    var metadata = messages(export.trace(0)).getFirst();
    assertThat(text(field(metadata, 1).getFirst())).isEqualTo("0.0.4");
    var attributes = attributes(field(metadata, 2));
    assertThat(attributes)
        .containsEntry(
            "origin", "planned by Braid 0.1.0 for 2 ranks, not measured and not by Chakra")
        .containsEntry("omitted", String.join("; ", export.omitted()));
    export.write(directory, "layer");
    assertThat(Files.readAllBytes(directory.resolve("layer.1.et"))).isEqualTo(export.trace(1));
    assertThatThrownBy(() -> export.write(directory.resolve("none"), "layer"))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("traces must be written to ");
  }
}
