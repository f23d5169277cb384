package braid.export;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Transport;
import braid.schedule.Slice;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// A decision as a program for PyTorch that needs nothing of Braid: it overlaps the same way by
/// symmetric memory of `torch.distributed`, compares its result with collectives of whole tensors,
/// and prints its times beside the measured ones.
public final class PyTorchExport {
  private static final String TARGET = "PyTorch (torch.distributed._symmetric_memory)";
  private static final Set<Pattern> PATTERNS =
      EnumSet.of(Pattern.ALL_GATHER_GEMM, Pattern.GEMM_REDUCE_SCATTER);
  private static final Set<Method> METHODS = EnumSet.of(Method.PIPELINED, Method.DIRECT);

  private PyTorchExport() {}

  /// Returns the program, which `torchrun` starts.
  ///
  /// @throws BraidException if the program has no such problem or method
  public static Export program(TunedGemm decision) {
    var spec = decision.problem();
    var tuning = decision.tuning();
    int ranks = decision.ranks();
    check("pattern", PATTERNS, spec.pattern());
    check("method", METHODS, tuning.method());
    checkTypes(spec);
    checkSizes(spec, ranks);
    var values = new LinkedHashMap<String, String>();
    values.put("ranks", Integer.toString(ranks));
    values.put("pattern", spec.pattern().toString());
    values.put("method", tuning.method().toString());
    values.put("rows", Integer.toString(spec.m()));
    values.put("columns", Integer.toString(spec.n()));
    values.put("depth", Integer.toString(spec.k()));
    values.put("dtype", typeName(spec.dtype()));
    values.put("transposed", spec.has(Feature.TRANSPOSED_WEIGHT) ? "True" : "False");
    values.put("chunks", chunks(spec.m() / ranks, tuning));
    values.put("order", tuning.order().toString());
    values.put("streams", Integer.toString(tuning.streams()));
    values.put(
        "priorities",
        switch (tuning.priority()) {
          case COMMUNICATION -> "-1, 0";
          case EQUAL -> "0, 0";
          case GEMM -> "0, -1";
        });
    values.put("median", micros(decision.medianNanos()));
    values.put("reference", micros(decision.referenceNanos()));
    var program = template();
    for (var value : values.entrySet()) {
      program = program.replace("%(" + value.getKey() + ")s", value.getValue());
    }
    return Export.commented(decision.machine(), TARGET, omitted(spec, tuning), program);
  }

  private static String micros(double nanos) {
    return String.format(Locale.ROOT, "%.1f", nanos / 1e3);
  }

  private static <T> void check(String name, Set<T> possible, T found) {
    if (!possible.contains(found)) {
      throw new BraidException(
          "the %s of a program for PyTorch must be %s but was %s; export the fastest such decision"
              .formatted(
                  name,
                  possible.stream().map(Object::toString).collect(Collectors.joining(" or ")),
                  found));
    }
  }

  private static void checkTypes(GemmSpec spec) {
    if (spec.weightDtype() != spec.dtype() || spec.outputDtype() != spec.dtype()) {
      throw new BraidException(
          "a program for PyTorch needs one type but the problem is `%s`; set it by dtype(...)"
              .formatted(spec));
    }
    check("dtype", EnumSet.of(DType.BF16, DType.FP16, DType.FP32), spec.dtype());
    var others = EnumSet.noneOf(Feature.class);
    others.addAll(spec.features());
    others.remove(Feature.TRANSPOSED_WEIGHT);
    if (!others.isEmpty()) {
      throw new BraidException(
          "a program for PyTorch has no %s; measure the problem without it"
              .formatted(others.stream().map(Feature::toString).collect(Collectors.joining(", "))));
    }
  }

  private static void checkSizes(GemmSpec spec, int ranks) {
    divisible("m", spec.m(), ranks);
    if (spec.pattern() == Pattern.ALL_GATHER_GEMM) {
      divisible("n", spec.n(), ranks);
    } else {
      divisible("k", spec.k(), ranks);
    }
  }

  /// The collectives of PyTorch that check the result have parts of one size.
  private static void divisible(String name, int size, int ranks) {
    if (size % ranks != 0) {
      throw new BraidException(
          "%s must be divisible by %d ranks for PyTorch but was %d; measure %s = %d"
              .formatted(name, ranks, size, name, Math.max(1, size / ranks) * ranks));
    }
  }

  private static String typeName(DType type) {
    return switch (type) {
      case BF16 -> "bfloat16";
      case FP16 -> "float16";
      default -> "float32";
    };
  }

  private static String chunks(int part, Overlap tuning) {
    var slices =
        tuning.boundaries().isEmpty()
            ? IntStream.range(0, tuning.splits())
                .mapToObj(chunk -> Slice.of(part, tuning.splits(), chunk))
                .toList()
            : IntStream.range(0, tuning.splits())
                .mapToObj(
                    chunk -> {
                      int start = tuning.boundaries().get(chunk);
                      return new Slice(start, tuning.boundaries().get(chunk + 1) - start);
                    })
                .toList();
    if (slices.getLast().end() != part || slices.stream().anyMatch(Slice::isEmpty)) {
      throw new BraidException(
          "the chunks of a part of %d rows must have a row each and end with it but are %s; give a tuning of this problem"
              .formatted(part, slices));
    }
    return slices.stream()
        .map(slice -> "(%d, %d)".formatted(slice.start(), slice.end()))
        .collect(Collectors.joining(", ", "[", "]"));
  }

  private static List<String> omitted(GemmSpec spec, Overlap tuning) {
    var omitted = new ArrayList<String>();
    if (tuning.transport() == Transport.WORKERS) {
      omitted.add(
          "%d workers: PyTorch copies between GPUs by copy engines".formatted(tuning.workers()));
    }
    if (tuning.transport() == Transport.ONE_KERNEL) {
      omitted.add("one kernel with its signals: the program copies, adds and signals one by one");
    }
    if (tuning.transport().isLibrary()) {
      omitted.add(
          "%s: the program exchanges pieces by copies, not by collectives of a library"
              .formatted(tuning.transport()));
    }
    if (tuning.replayed()) {
      omitted.add("replayed: the program enqueues each iteration");
    }
    if (tuning.symmetricOutput()) {
      omitted.add("output in symmetric memory: the program's is in ordinary memory");
    }
    if (spec.pattern() == Pattern.GEMM_REDUCE_SCATTER) {
      omitted.add(
          "sums of pieces: Braid adds each piece when all ranks have sent it, the program adds all at the end");
    }
    omitted.add(
        "signals between two ranks: the program has a barrier before and after an iteration");
    return omitted;
  }

  private static String template() {
    try (var stream = PyTorchExport.class.getResourceAsStream("/braid/export/reproduction.py")) {
      if (stream == null) {
        throw new IllegalStateException("reproduction.py is missing");
      }
      return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
