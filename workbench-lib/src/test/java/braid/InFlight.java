package braid;

import braid.internal.backend.Stream;
import braid.internal.context.RankContext;
import braid.internal.host.HostGate;
import braid.internal.selftest.PipelineCase;
import braid.internal.work.Work;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.Link;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/// Compares a pipeline with iterations in flight, whose inputs differ from iteration to iteration,
/// with the same pipeline run one iteration at a time. If a copy of the next iteration overwrites
/// data that one in flight still reads, a number is wrong.
///
/// Inputs are written and outputs are saved by work on the first stream, between two iterations. A
/// slow link and gates on single streams keep the ranks and their streams apart.
final class InFlight implements AutoCloseable {
  static final int ITERATIONS = 20;

  private static final Link SLOW = Link.parse("200MB/s,100us");

  /// At most the number of iterations that is always allowed in flight: a gate that opens later
  /// would wait for itself.
  private static final int MOST_GATES_OPEN_LATER = 2;

  private static final Work WORK = Work.of(() -> "what the test does between two iterations");

  private final Arena arena = Arena.ofShared();
  private final Pipeline pipe;
  private final int rank;
  private final List<MemorySegment> inputs;
  private final List<MemorySegment> outputs;
  private final List<List<MemorySegment>> given = new ArrayList<>();
  private final SplittableRandom random;

  private InFlight(Pipeline pipe, long seed) {
    this.pipe = pipe;
    this.rank = pipe.group().rank();
    this.random = new SplittableRandom(seed + rank);
    var spec = (GemmSpec) pipe.problem();
    var reads = new ArrayList<>(List.of(pipe.input(), pipe.weight()));
    var writes = new ArrayList<>(List.of(pipe.output()));
    if (spec.pattern().beside()) {
      reads.add(pipe.besideInput());
      writes.add(pipe.besideOutput());
    }
    if (spec.has(Feature.GELU)) {
      writes.add(pipe.preActivation());
    }
    if (spec.has(Feature.GATHERED_INPUT)) {
      writes.add(pipe.gatheredInput());
    }
    inputs = reads.stream().map(TensorView::segment).toList();
    outputs = writes.stream().map(TensorView::segment).toList();
    for (int i = 0; i < ITERATIONS; i++) {
      int iteration = i;
      reads.forEach(
          tensor ->
              tensor.fillIntegers(seed + 1000L * iteration + 10L * rank + reads.indexOf(tensor)));
      given.add(copies(inputs));
    }
  }

  /// Compares a case with itself on every rank of the group, and then with plain loops.
  static void hold(PipelineCase each, ProcessGroup group, long seed) {
    var builder = Pipeline.on(group).gemm(each.spec()).overlap(each.tuning());
    if (each.spec().outputDtype().isFp8()) {
      builder.scales(0.5f, 4, 0.25f);
    } else if (each.spec().isScaled()) {
      builder.scales(0.5f, 4);
    }
    try (var pipe = builder.build();
        var run = new InFlight(pipe, seed)) {
      var expected = run.oneByOne();
      // The same on all ranks.
      int slow = new SplittableRandom(seed).nextInt(2 * group.size());
      var backend = RankContext.current().backend();
      if (slow == group.rank()) {
        backend.playLink(SLOW);
      }
      var received = run.inFlight();
      backend.playLink(Link.UNLIMITED);
      for (int i = 0; i < ITERATIONS; i++) {
        for (int o = 0; o < expected.get(i).size(); o++) {
          long index = expected.get(i).get(o).mismatch(received.get(i).get(o));
          if (index >= 0) {
            throw new AssertionError(
                "%s on rank %s: byte %d of output %d of iteration %d in flight differs"
                    .formatted(each, group.place(), index, o, i));
          }
        }
      }
      pipe.output().fill(0);
      pipe.verify();
    }
    Contract.hold(each, group);
  }

  private List<MemorySegment> copies(List<MemorySegment> values) {
    return values.stream()
        .map(segment -> arena.allocate(segment.byteSize(), Long.BYTES).copyFrom(segment))
        .toList();
  }

  private List<List<MemorySegment>> oneByOne() {
    pipe.output().fill(0);
    var results = new ArrayList<List<MemorySegment>>();
    for (var numbers : given) {
      for (int i = 0; i < inputs.size(); i++) {
        inputs.get(i).copyFrom(numbers.get(i));
      }
      pipe.run();
      results.add(copies(outputs));
    }
    return results;
  }

  private List<List<MemorySegment>> inFlight() {
    pipe.output().fill(0);
    var results = new ArrayList<List<MemorySegment>>();
    var gates = new ArrayList<List<HostGate>>();
    for (int i = 0; i <= ITERATIONS; i++) {
      gates.add(new ArrayList<>());
    }
    var streams = pipe.streams();
    var first = streams.getFirst();
    var _ =
        pipe.inFlight(
            ITERATIONS,
            _ -> {
              int iteration = results.size();
              results.add(
                  outputs.stream()
                      .map(each -> arena.allocate(each.byteSize(), Long.BYTES))
                      .toList());
              if (iteration > 0) {
                save(first, results.get(iteration - 1));
              }
              for (int i = 0; i < inputs.size(); i++) {
                first.copyLocal(WORK, given.get(iteration).get(i), inputs.get(i));
              }
              var written = first.mark();
              streams.subList(1, streams.size()).forEach(each -> each.await(WORK, written));
              if (iteration < ITERATIONS - 1 && random.nextInt(3) == 0) {
                int later = iteration + 1 + random.nextInt(MOST_GATES_OPEN_LATER);
                gates
                    .get(Math.min(later, ITERATIONS - 1))
                    .add(new HostGate(streams.get(random.nextInt(streams.size()))));
              }
              gates.get(iteration).forEach(HostGate::open);
            });
    for (int i = 0; i < outputs.size(); i++) {
      results.getLast().get(i).copyFrom(outputs.get(i));
    }
    return results;
  }

  private void save(Stream stream, List<MemorySegment> target) {
    for (int i = 0; i < outputs.size(); i++) {
      stream.copyLocal(WORK, outputs.get(i), target.get(i));
    }
  }

  @Override
  public void close() {
    arena.close();
  }
}
