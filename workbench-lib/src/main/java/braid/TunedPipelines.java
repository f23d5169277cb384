package braid;

import braid.Candidates.Work;
import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import braid.model.Problem;
import braid.model.TokenLayout;
import braid.model.Tokens;
import braid.model.Tuning;
import braid.natives.kernels.Drawn;
import braid.schedule.Schedule;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// Builds the pipelines that a tuner measures, and verifies them on integers, whose sums are exact.
/// A GPU multiplies integers faster than real numbers, so pipelines are timed on these there. Plain
/// loops verify attention, so a long one is verified on its first tokens.
///
/// @param kind kind of symmetric memory; null for the default
/// @param timed numbers that pipelines are timed on
record TunedPipelines(ProcessGroup group, @Nullable MemoryKind kind, Drawn timed) {
  /// Operations of the longest attention that is verified as it is, which takes about a second.
  static final double MOST_VERIFIED_FLOPS = 2e8;

  TunedPipelines(ProcessGroup group, @Nullable MemoryKind kind) {
    this(group, kind, group.onGpu() ? Drawn.REALS : Drawn.INTEGERS);
  }

  /// Builds the pipeline of a problem and a tuning.
  Work build(Problem problem, Tuning tuning) {
    var work = work(links(problem, builder -> builder.overlap(tuning)));
    var shorter = verified(problem, tuning);
    return shorter.equals(problem)
        ? work
        : new Work.OfChain(
            work.chain(),
            () -> {
              var tokens = work(links(shorter, builder -> builder.overlap(tuning)));
              try {
                tokens.verify();
              } finally {
                tokens.close();
              }
            },
            work.closing());
  }

  /// Builds the pipeline of a schedule of one's own.
  Work build(Problem problem, Schedule own) {
    return work(links(problem, builder -> builder.schedule(own)));
  }

  private Work.OfChain work(List<Pipeline> links) {
    var chain = Chain.of(links.getFirst());
    Runnable closing = () -> links.forEach(Pipeline::close);
    if (timed == Drawn.INTEGERS) {
      // Pipelines begin with them.
      return new Work.OfChain(chain, chain::verify, closing);
    }
    try {
      draw(links, timed);
    } catch (RuntimeException | Error e) {
      closing.run();
      throw e;
    }
    return new Work.OfChain(
        chain,
        () -> {
          draw(links, Drawn.INTEGERS);
          chain.verify();
          draw(links, timed);
        },
        closing);
  }

  /// Fills the inputs of all links, and runs those that the first one reads.
  private static void draw(List<Pipeline> links, Drawn numbers) {
    for (var link : links.reversed()) {
      link.draw(numbers);
      if (link != links.getFirst()) {
        link.run();
      }
    }
  }

  /// Builds the pipeline of a problem, then the one that it reads: a backward pass reads an
  /// attention, which has run once.
  ///
  /// @param solved sets the tuning or the schedule
  private List<Pipeline> links(Problem problem, UnaryOperator<Pipeline.Builder> solved) {
    return switch (problem) {
      case GemmSpec spec -> {
        var builder = solved.apply(begun().gemm(spec));
        if (spec.isScaled()) {
          var _ = spec.outputDtype().isFp8() ? builder.scales(1, 1, 1) : builder.scales(1, 1);
        }
        yield List.of(builder.build());
      }
      case AttentionSpec spec -> List.of(solved.apply(begun().attention(spec)).build());
      case AttentionGradientSpec spec -> {
        var forward = begun().attention(spec.forward()).build();
        try {
          forward.run();
          yield List.of(solved.apply(begun().attention(spec).backward(forward)).build(), forward);
        } catch (RuntimeException | Error e) {
          forward.close();
          throw e;
        }
      }
    };
  }

  private Pipeline.Builder begun() {
    var builder = Pipeline.on(group);
    return kind == null ? builder : builder.memory(kind);
  }

  /// Returns the problem that is verified: of the first tokens, if plain loops would verify the
  /// whole one for long. It has tokens for each rank, and for each split of it.
  Problem verified(Problem problem, Tuning tuning) {
    return attention(problem)
        .filter(whole -> whole.flops() > MOST_VERIFIED_FLOPS)
        .map(
            whole -> {
              int least = 2 * group.size() * tuning.count("splits", 1);
              int tokens = whole.sequence();
              while (tokens / 2 >= least
                  && whole.first(tokens).flops() > MOST_VERIFIED_FLOPS
                  && isPossible(whole.first(tokens / 2), tuning)) {
                tokens /= 2;
              }
              return with(problem, whole.first(tokens));
            })
        .orElse(problem);
  }

  private boolean isPossible(AttentionSpec spec, Tuning tuning) {
    return Tokens.without(spec, group.size()).isEmpty()
        && !(tuning instanceof ContextParallel method
            && method.splits() > method.mostSplits(spec, group.size()));
  }

  /// Returns the attention of a problem; empty for a GEMM.
  static Optional<AttentionSpec> attention(Problem problem) {
    return switch (problem) {
      case GemmSpec _ -> Optional.empty();
      case AttentionSpec spec -> Optional.of(spec);
      case AttentionGradientSpec spec -> Optional.of(spec.forward());
    };
  }

  /// Returns the problem of attention in another layout.
  static Problem divided(Problem problem, TokenLayout layout) {
    return with(problem, attention(problem).orElseThrow().layout(layout));
  }

  private static Problem with(Problem problem, AttentionSpec attention) {
    return problem instanceof AttentionGradientSpec backward
        ? new AttentionGradientSpec(attention, backward.isDeterministic())
        : attention;
  }
}
