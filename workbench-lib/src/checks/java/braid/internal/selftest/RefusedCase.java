package braid.internal.selftest;

import braid.Collectives;
import braid.Pipeline;
import braid.ProcessGroup;
import braid.SymmetricTensor;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GroupAborted;
import braid.model.MemoryKind;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/// A mistake that must throw a [BraidException] on every rank, and correct work that follows on the
/// same group.
///
/// @param build pipeline that cannot be built; only for that mistake
public record RefusedCase(Mistake mistake, Optional<PipelineCase> build) implements Case {
  /// The mistakes.
  public enum Mistake {
    /// A problem or a tuning that is infeasible on that number of ranks.
    BUILD,
    SHAPE_OF_RESULT,
    VIEW_OUT_OF_RANGE,
    CLOSED_TENSOR,
    CLOSED_PIPELINE,
    CLOSED_GROUP,
    /// Rank 0 makes another call than the others.
    DIFFERENT_CALLS,
    /// Rank 0 allocates another shape than the others; the pool has memory for all of them.
    DIFFERENT_SHAPES,
    /// Rank 0 builds another problem than the others.
    DIFFERENT_PROBLEMS;

    boolean differs() {
      return this == DIFFERENT_CALLS || this == DIFFERENT_SHAPES || this == DIFFERENT_PROBLEMS;
    }

    /// Returns true if that number of ranks can make the mistake.
    boolean feasible(int ranks) {
      return !differs() || ranks > 1;
    }
  }

  /// Returns the mistakes after which ranks can continue.
  public static List<Mistake> possible() {
    return List.of(Mistake.values());
  }

  @Override
  public String text() {
    return "REFUSED,%s%s".formatted(mistake, build.map(each -> "," + each.text()).orElse(""));
  }

  /// Makes the mistake at once.
  @Override
  public Opened open(CaseContext context, Findings findings) {
    make(context.group(), context.kind(), findings);
    correctWork(context.group(), context.kind(), findings);
    return new Done();
  }

  private record Done() implements Opened {
    @Override
    public void round(int round, Findings findings) {}

    @Override
    public void close() {}
  }

  /// Returns another group of the same ranks.
  private static ProcessGroup another(ProcessGroup group, String name) {
    return group.subset(name, IntStream.range(0, group.size()).toArray());
  }

  private void make(ProcessGroup group, MemoryKind kind, Findings findings) {
    boolean differs = group.rank() == 0;
    switch (mistake) {
      case BUILD ->
          refused(findings, () -> build.orElseThrow().build(CaseContext.of(group, kind)).close());
      case SHAPE_OF_RESULT -> {
        var comm = Collectives.on(group);
        try (var x = tensor(group, kind, 3);
            var y = tensor(group, kind, 3L * group.size() + 1)) {
          refused(findings, () -> comm.allGather(x, y));
        }
      }
      case VIEW_OUT_OF_RANGE -> {
        try (var x = tensor(group, kind, 3)) {
          refused(findings, () -> x.local().rows(2, 2));
          refused(findings, () -> x.on(group.size()));
          refused(findings, () -> x.all().get(group.size(), 0));
        }
      }
      case CLOSED_TENSOR -> {
        var comm = Collectives.on(group);
        var x = tensor(group, kind, 3);
        x.close();
        refused(findings, x::local);
        refused(findings, () -> comm.broadcast(x, 0));
      }
      case CLOSED_PIPELINE -> {
        var pipe = pipeline(group, kind, 2);
        pipe.run();
        pipe.close();
        refused(findings, pipe::run);
        refused(findings, pipe::output);
      }
      case CLOSED_GROUP -> {
        var other = another(group, "again");
        correctWork(other, kind, findings);
        other.close();
        refused(findings, other::barrier);
        correctWork(another(group, "again"), kind, findings);
      }
      case DIFFERENT_CALLS ->
          refused(
              findings,
              () -> {
                if (differs) {
                  group.barrier();
                } else {
                  var _ = group.gather(1L);
                }
              });
      case DIFFERENT_SHAPES -> {
        tensor(group, kind, 2).close();
        tensor(group, kind, 3).close();
        refused(findings, () -> tensor(group, kind, differs ? 2 : 3).close());
      }
      case DIFFERENT_PROBLEMS ->
          refused(findings, () -> pipeline(group, kind, differs ? 2 : 3).close());
    }
  }

  private static SymmetricTensor tensor(ProcessGroup group, MemoryKind kind, long elements) {
    return SymmetricTensor.on(group).shape(elements).memory(kind).allocate();
  }

  private static Pipeline pipeline(ProcessGroup group, MemoryKind kind, int rowsPerRank) {
    int ranks = group.size();
    return Pipeline.on(group)
        .gemm(GemmSpec.gemmReduceScatter(rowsPerRank * ranks, 5, ranks).dtype(DType.FP32))
        .memory(kind)
        .build();
  }

  private void refused(Findings findings, Runnable call) {
    try {
      call.run();
      findings.found("%s must be refused but was not".formatted(text()));
    } catch (GroupAborted e) {
      throw e;
    } catch (BraidException _) {
      // Expected.
    }
  }

  /// Computes a sum over all ranks, which must be right after any mistake.
  private void correctWork(ProcessGroup group, MemoryKind kind, Findings findings) {
    try (var x = tensor(group, kind, 3)) {
      x.local().fill(group.rank() + 1);
      Collectives.on(group).allReduce(x, x);
      float sum = group.size() * (group.size() + 1) / 2f;
      findings.same(
          "sum after %s on rank %s".formatted(text(), group.place()),
          new float[] {sum, sum, sum},
          x.local().toFloats());
    }
  }
}
