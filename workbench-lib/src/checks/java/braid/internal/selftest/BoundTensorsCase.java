package braid.internal.selftest;

import braid.Capabilities;
import braid.LocalTensor;
import braid.Pipeline;
import braid.ProcessGroup;
import braid.SymmetricTensor;
import braid.Tensor;
import braid.TensorView;
import braid.internal.rank.Closing;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Overlap;
import braid.schedule.Part;
import braid.schedule.Schedule;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Objects;

/// A pipeline all of whose inputs and outputs are tensors of the caller. Its numbers are written to
/// and read from these tensors.
public record BoundTensorsCase(PipelineCase pipeline, Tensors tensors) implements TabledCase {
  /// Memory of the caller's tensors.
  public enum Tensors {
    LOCAL,
    SYMMETRIC
  }

  private static final int SPLITS = 2;

  /// Returns a case of every supported row in every type and memory.
  public static List<BoundTensorsCase> table(List<Capabilities.Row> rows, int ranks) {
    var cases = new ArrayList<BoundTensorsCase>();
    for (var row : rows) {
      if (row.supported()) {
        for (var tensors : Tensors.values()) {
          for (var dtype : AttentionCase.DTYPES) {
            var tuning = PipelineCases.tuning(row.method(), SPLITS, ranks).over(row.transport());
            var spec =
                PipelineCases.fitting(
                    spec(row.pattern(), ranks).dtype(dtype), row.transport(), ranks);
            cases.add(new BoundTensorsCase(new PipelineCase(spec, tuning), tensors));
          }
        }
      }
    }
    return cases;
  }

  /// Returns one case per pattern, memory and type; methods and transports take turns.
  public static List<BoundTensorsCase> quick(List<Capabilities.Row> rows, int ranks) {
    var all = table(rows, ranks);
    var cases = new ArrayList<BoundTensorsCase>();
    int turn = 0;
    for (var pattern : Pattern.values()) {
      for (var tensors : Tensors.values()) {
        for (var dtype : AttentionCase.DTYPES) {
          var some =
              all.stream()
                  .filter(each -> each.pipeline.spec().pattern() == pattern)
                  .filter(each -> each.tensors == tensors && each.dtype() == dtype)
                  .toList();
          if (!some.isEmpty()) {
            cases.add(some.get(turn++ % some.size()));
          }
        }
      }
    }
    return cases;
  }

  /// Returns a problem with as many tensors as its pattern has, whose parts are equally large.
  private static GemmSpec spec(Pattern pattern, int ranks) {
    var spec = PipelineCases.spec(pattern, 4 * ranks, 3 * ranks, 2 * ranks, 5L * ranks);
    return switch (pattern) {
      case ALL_GATHER_GEMM -> spec.bias().gelu().gatheredInput();
      case GEMM_REDUCE_SCATTER -> spec.bias().accumulate();
      case GEMM_ALL_REDUCE -> spec.accumulate();
      case GEMM_BESIDE_ALL_GATHER -> spec.transposedWeight().accumulate();
      case GEMM_BESIDE_REDUCE_SCATTER -> spec.transposedInput();
    };
  }

  @Override
  public String what() {
    return "bound-%s-tensors".formatted(tensors.name().toLowerCase(Locale.ROOT));
  }

  @Override
  public String method() {
    return pipeline.what();
  }

  @Override
  public DType dtype() {
    return pipeline.dtype();
  }

  @Override
  public String text() {
    return "%s: %s".formatted(what(), pipeline.text());
  }

  @Override
  public Opened open(CaseContext context, Findings findings) {
    var resources = new ArrayDeque<AutoCloseable>();
    try {
      var views = new EnumMap<Part, TensorView>(Part.class);
      var builder = pipeline.builder(context);
      for (var part : parts()) {
        var sizes = sizes(part, context.group());
        var dtype = part.dtype(pipeline.spec());
        switch (tensors) {
          case LOCAL -> {
            var tensor = LocalTensor.on(context.group());
            var allocated = tensor.shape(sizes).dtype(dtype).allocate();
            resources.push(allocated);
            views.put(part, allocated.view());
            bind(builder, part, allocated);
          }
          case SYMMETRIC -> {
            var tensor = SymmetricTensor.on(context.group()).memory(context.kind());
            var allocated = tensor.shape(sizes).dtype(dtype).allocate();
            resources.push(allocated);
            views.put(part, allocated.local());
            bind(builder, part, allocated);
          }
        }
      }
      var opened =
          pipeline.open(
              builder.build(), part -> Objects.requireNonNull(views.get(part)), context, findings);
      resources.push(opened);
      return new Running(opened, resources);
    } catch (RuntimeException | Error e) {
      Closing.all(resources::poll);
      throw e;
    }
  }

  private List<Part> parts() {
    var schedule = Schedule.of(pipeline.spec(), Overlap.unfused(), 1);
    return Arrays.stream(Part.values())
        .filter(part -> schedule.port(part.port()).isPresent())
        .toList();
  }

  private long[] sizes(Part part, ProcessGroup group) {
    return part.sizes(pipeline.spec(), group.size(), group.rank()).stream()
        .mapToLong(Long::longValue)
        .toArray();
  }

  private static void bind(Pipeline.Builder builder, Part part, Tensor tensor) {
    var _ =
        switch (part) {
          case INPUT -> builder.input(tensor);
          case WEIGHT -> builder.weight(tensor);
          case BIAS -> builder.bias(tensor);
          case BESIDE_INPUT -> builder.besideInput(tensor);
          case OUTPUT -> builder.output(tensor);
          case PRE_ACTIVATION -> builder.preActivation(tensor);
          case GATHERED_INPUT -> builder.gatheredInput(tensor);
          case BESIDE_OUTPUT -> builder.besideOutput(tensor);
          default -> throw new IllegalArgumentException("a GEMM has no " + part);
        };
  }

  /// @param resources the pipeline and, after it, the tensors
  private record Running(Opened pipeline, Deque<AutoCloseable> resources) implements Opened {
    @Override
    public void round(int round, Findings findings) {
      pipeline.round(round, findings);
    }

    @Override
    public void close() {
      Closing.all(resources::poll);
    }
  }
}
