package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import braid.GemmSpec.Feature;
import braid.GemmSpec.Pattern;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.stream.Collectors;

/// One case of the contract that every way of every pattern keeps on every kind of rank: what it
/// computes is, to the last bit, what plain loops compute from the same integers. It has a form as
/// text, so that ranks that are processes can be given it, and a failure can be run again.
record PipelineCase(GemmSpec spec, Overlap how) {
  static final float INPUT_SCALE = 0.5f;
  static final float WEIGHT_SCALE = 4;
  private static final int ROUNDS = 2;

  String text() {
    return String.join(
        ",",
        spec.pattern().name(),
        Integer.toString(spec.m()),
        Integer.toString(spec.n()),
        Integer.toString(spec.k()),
        Long.toString(spec.besideElements()),
        spec.dtype().name(),
        spec.outputDtype().name(),
        spec.features().stream().map(Enum::name).collect(Collectors.joining("+")),
        how.method().name(),
        Integer.toString(how.splits()),
        how.boundaries().stream().map(String::valueOf).collect(Collectors.joining("-")),
        Integer.toString(how.streams()),
        how.order().name(),
        how.transport().name(),
        Integer.toString(how.workers()),
        how.priority().name(),
        Boolean.toString(how.replayed()),
        Boolean.toString(how.symmetricOutput()));
  }

  static PipelineCase parse(String text) {
    var part = text.split(",", -1);
    var features = EnumSet.noneOf(Feature.class);
    Arrays.stream(part[7].split("\\+"))
        .filter(name -> !name.isEmpty())
        .map(Feature::valueOf)
        .forEach(features::add);
    return new PipelineCase(
        new GemmSpec(
            Pattern.valueOf(part[0]),
            Integer.parseInt(part[1]),
            Integer.parseInt(part[2]),
            Integer.parseInt(part[3]),
            Long.parseLong(part[4]),
            DType.valueOf(part[5]),
            DType.valueOf(part[6]),
            features),
        new Overlap(
            Method.valueOf(part[8]),
            Integer.parseInt(part[9]),
            Arrays.stream(part[10].split("-"))
                .filter(cut -> !cut.isEmpty())
                .map(Integer::valueOf)
                .toList(),
            Integer.parseInt(part[11]),
            ChunkOrder.valueOf(part[12]),
            Transport.valueOf(part[13]),
            Integer.parseInt(part[14]),
            Priority.valueOf(part[15]),
            Boolean.parseBoolean(part[16]),
            Boolean.parseBoolean(part[17])));
  }

  /// Holds the case to its contract, on this rank of the group.
  void check(ProcessGroup group) {
    try (var pipe = build(group)) {
      pipe.verify();
      // Other inputs in every round: what an earlier one left must not be taken for this one's.
      for (int round = 0; round < ROUNDS; round++) {
        fill(pipe, round);
        pipe.run();
        compare(pipe, round);
      }
    } catch (RuntimeException | Error e) {
      throw new AssertionError(
          "%s, %s on rank %s: %s%n%s".formatted(spec, how, group.place(), e, text()), e);
    }
  }

  private Pipeline build(ProcessGroup group) {
    var builder = Pipeline.on(group).gemm(spec).overlap(how);
    if (spec.dtype().isFp8()) {
      builder.scales(INPUT_SCALE, WEIGHT_SCALE);
    }
    return builder.build();
  }

  private void fill(Pipeline pipe, int round) {
    int rank = pipe.group().rank();
    pipe.input().fillIntegers(seed(round, rank, PlainCase.What.INPUT.seed()));
    pipe.weight().fillIntegers(seed(round, rank, PlainCase.What.WEIGHT.seed()));
    if (spec.has(Feature.BIAS)) {
      pipe.bias().fillIntegers(seed(round, 0, PlainCase.What.BIAS.seed()));
    }
    if (spec.pattern().beside()) {
      pipe.besideInput().fillIntegers(seed(round, rank, PlainCase.What.BESIDE.seed()));
    }
    if (spec.has(Feature.ACCUMULATE)) {
      pipe.output().fillIntegers(seed(round, outputSeedRank(rank), PlainCase.What.OUTPUT.seed()));
    }
  }

  /// An all-reduce adds to what all ranks have alike.
  private int outputSeedRank(int rank) {
    return spec.pattern() == Pattern.GEMM_ALL_REDUCE ? 0 : rank;
  }

  private static long seed(int round, int rank, int what) {
    return 1_000_000L * round + 1000L * rank + what;
  }

  private void compare(Pipeline pipe, int round) {
    var place = pipe.group().place();
    var as = "%s, %s on rank %s, round %d".formatted(spec, how, place, round);
    var plain =
        new PlainCase(spec, place, what -> rank -> size -> integers(round, rank, what, size));
    var sums = plain.output();
    var dtype = spec.outputDtype();
    if (spec.has(Feature.GELU)) {
      assertThat(pipe.preActivation().toFloats())
          .as(as)
          .containsExactly(PlainCase.rounded(dtype, sums));
      var got = pipe.output().toFloats();
      for (int i = 0; i < sums.length; i++) {
        double wanted = PlainCase.gelu(sums[i]);
        assertThat((double) got[i])
            .as("%s, output %d", as, i)
            .isCloseTo(wanted, within(dtype.epsilon() * Math.abs(wanted) + 1e-6));
      }
    } else {
      assertThat(pipe.output().toFloats()).as(as).containsExactly(PlainCase.rounded(dtype, sums));
    }
    if (spec.has(Feature.GATHERED_INPUT)) {
      assertThat(pipe.gatheredInput().toFloats()).as(as).containsExactly(plain.wholeInput());
    }
    if (spec.pattern().beside()) {
      assertThat(pipe.besideOutput().toFloats()).as(as).containsExactly(plain.besideOutput());
    }
    if (spec.dtype().isFp8()) {
      // Gathered first: assertions between collective calls would leave the other ranks waiting.
      float amax = pipe.amax();
      float largest = 0;
      for (double each : pipe.group().gather((double) PlainCase.largest(plain.activated()))) {
        largest = Math.max(largest, (float) each);
      }
      assertThat(amax).as(as).isCloseTo(largest, within(largest * 1e-6f));
    }
    if (how.symmetricOutput()) {
      pipe.group().barrier();
      int peer = (place.rank() + 1) % place.size();
      var ofPeer = pipe.output(peer).toFloats();
      pipe.group().barrier();
      if (!spec.has(Feature.GELU)) {
        var there =
            new PlainCase(
                spec,
                new Place(peer, place.size()),
                what -> rank -> size -> integers(round, rank, what, size));
        assertThat(ofPeer)
            .as("%s, as seen from rank %s", as, place)
            .containsExactly(PlainCase.rounded(dtype, there.output()));
      }
    }
  }

  /// What that rank filled that with.
  private float[] integers(int round, int rank, PlainCase.What what, int size) {
    int seedRank =
        switch (what) {
          case INPUT, WEIGHT, BESIDE -> rank;
          case BIAS -> 0;
          case OUTPUT -> outputSeedRank(rank);
        };
    try (var arena = java.lang.foreign.Arena.ofConfined()) {
      return new Tensor(
              List.of((long) size),
              DType.FP32,
              arena.allocate((long) size * Float.BYTES),
              braid.internal.host.HostAccess.HOST)
          .fillIntegers(seed(round, seedRank, what.seed()))
          .toFloats();
    }
  }
}
