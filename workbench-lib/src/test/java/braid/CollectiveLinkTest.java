package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Timing;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Collectives as links of chains and started ahead, compared with plain loops.
class CollectiveLinkTest {
  private static final int ROWS = 12;
  private static final int COLUMNS = 5;

  private static Stream<Arguments> waysOfRanks() {
    return Stream.of(1, 2, 3)
        .flatMap(
            ranks ->
                Stream.of(Transport.COPY_ENGINE, Transport.WORKERS, Transport.ONE_KERNEL)
                    .map(way -> Arguments.of(ranks, way)));
  }

  private static float given(int rank, int index) {
    return (rank + 1) * 7 + index % 13;
  }

  private static SymmetricTensor tensor(ProcessGroup world, int rows) {
    return SymmetricTensor.on(world).shape(rows, COLUMNS).allocate();
  }

  private static void fill(SymmetricTensor x, int rank) {
    var values = new float[Math.toIntExact(x.local().elements())];
    for (int i = 0; i < values.length; i++) {
      values[i] = given(rank, i);
    }
    x.local().copyFrom(values);
  }

  private static float[] sums(int ranks, int length, int skipped) {
    var sums = new float[length];
    for (int i = 0; i < length; i++) {
      for (int rank = 0; rank < ranks; rank++) {
        sums[i] += given(rank, skipped + i);
      }
    }
    return sums;
  }

  /// Every collective, run alone, in flight, and verified.
  @ParameterizedTest
  @MethodSource("waysOfRanks")
  void aLinkHasTheResultOfItsCall(int ranks, Transport way) {
    LocalRanks.run(
        ranks,
        world -> {
          int rank = world.rank();
          int part = ROWS / ranks * COLUMNS;
          try (var x = tensor(world, ROWS);
              var gathered = tensor(world, ROWS * ranks);
              var scattered = tensor(world, ROWS / ranks);
              var added = tensor(world, ROWS);
              var exchanged = tensor(world, ROWS);
              var root = tensor(world, ROWS)) {
            fill(x, rank);
            fill(root, rank);
            var comm = Collectives.on(world).over(way);
            var all =
                Chain.of(
                    comm.link(c -> c.allGather(x, gathered)),
                    comm.link(c -> c.reduceScatter(x, scattered)),
                    comm.link(c -> c.allReduce(x, added)),
                    comm.link(c -> c.allToAll(x, exchanged)),
                    comm.link(c -> c.broadcast(root, ranks - 1)),
                    comm.link(Collectives::barrier));
            world.barrier();
            for (BiConsumer<Chain, Integer> form :
                List.<BiConsumer<Chain, Integer>>of(
                    (chain, _) -> chain.run(),
                    (chain, count) -> chain.time(count, Timing.BACK_TO_BACK),
                    (chain, _) -> chain.start().await())) {
              List.of(gathered, scattered, added, exchanged)
                  .forEach(each -> each.local().fill(Float.NaN));
              world.barrier();
              form.accept(all, 9);
              for (int source = 0; source < ranks; source++) {
                for (int i = 0; i < ROWS * COLUMNS; i++) {
                  assertThat(gathered.local().toFloats()[source * ROWS * COLUMNS + i])
                      .isEqualTo(given(source, i));
                }
                for (int i = 0; i < part; i++) {
                  assertThat(exchanged.local().toFloats()[source * part + i])
                      .isEqualTo(given(source, rank * part + i));
                }
              }
              assertThat(scattered.local().toFloats())
                  .containsExactly(sums(ranks, part, rank * part));
              assertThat(added.local().toFloats()).containsExactly(sums(ranks, ROWS * COLUMNS, 0));
              assertThat(root.local().toFloats()[3]).isEqualTo(given(ranks - 1, 3));
              world.barrier();
            }
            var verified = all.verify();
            assertThat(verified.values())
                .isEqualTo(
                    (long) ranks * COLUMNS * (ROWS * ranks + ROWS / ranks + ROWS + ROWS + ROWS));
            assertThat(verified.exact()).isEqualTo(verified.values());
          }
        });
  }

  /// A layer whose sum is a link has the bits of calls between the multiplications.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4})
  void aLinkReadsTheOutputOfThePipelineBefore(int ranks) {
    LocalRanks.run(
        ranks,
        world -> {
          try (var self = world.subset("self-" + world.rank(), world.rank());
              var partial = tensor(world, ROWS);
              var sum = tensor(world, ROWS);
              var up =
                  Pipeline.on(self)
                      .gemm(GemmSpec.allGatherGemm(ROWS, COLUMNS, 6))
                      .overlap(Overlap.unfused())
                      .output(partial.local())
                      .build();
              var down =
                  Pipeline.on(self)
                      .gemm(GemmSpec.allGatherGemm(ROWS, 7, COLUMNS))
                      .overlap(Overlap.unfused())
                      .input(sum.local())
                      .build()) {
            var comm = Collectives.on(world);
            var layer =
                Chain.on(world).then(up).then(comm.link(c -> c.allReduce(partial, sum))).then(down);
            assertThat(layer.toString()).contains("all-reduce over copy_engine");
            for (int round = 0; round < 4; round++) {
              up.input().fillIntegers(100L * round + world.rank());
              up.run();
              comm.allReduce(partial, sum);
              down.run();
              var expected = down.output().toFloats();
              partial.local().fill(Float.NaN);
              sum.local().fill(Float.NaN);
              world.barrier();
              if (round % 2 == 0) {
                layer.run();
              } else {
                layer.time(5, Timing.BACK_TO_BACK);
              }
              assertThat(down.output().toFloats()).containsExactly(expected);
              world.barrier();
            }
            var spans = layer.profile(2).spans();
            for (int iteration : List.of(0, 1)) {
              int number = iteration;
              assertThat(spans)
                  .filteredOn(span -> span.iteration() == number)
                  .anyMatch(span -> span.stream().equals("2 reduce") && span.bytes() > 0);
            }
          }
        });
  }

  @Test
  void aStartedCollectiveRunsBesideAPipeline() {
    LocalRanks.run(
        3,
        world -> {
          int rank = world.rank();
          try (var x = tensor(world, ROWS);
              var y = tensor(world, ROWS * 3);
              var z = tensor(world, ROWS);
              var up =
                  Pipeline.on(world)
                      .gemm(GemmSpec.allGatherGemm(ROWS, 9, 6))
                      .overlap(Overlap.ring(2))
                      .build()) {
            fill(x, rank);
            var comm = Collectives.on(world);
            for (int round = 0; round < 3; round++) {
              y.local().fill(Float.NaN);
              world.barrier();
              var gathering = comm.start(c -> c.allGather(x, y));
              var adding = comm.start(c -> c.allReduce(x, z));
              up.verify();
              // Follows the started ones, with which it shares signals.
              comm.barrier();
              adding.await();
              gathering.await();
              gathering.await();
              assertThat(y.local().toFloats()[2 * ROWS * COLUMNS]).isEqualTo(given(2, 0));
              assertThat(z.local().toFloats()).containsExactly(sums(3, ROWS * COLUMNS, 0));
              world.barrier();
            }
            var running = up.start();
            running.await();
            assertThat(world.unfinished()).isEmpty();
            var left = comm.start(c -> c.allGather(x, y));
            assertThat(world.unfinished())
                .singleElement()
                .asString()
                .contains("all-gather over copy_engine", "not awaited");
            assertThat(world.unfinished()).isEmpty();
            left.await();
          }
        });
  }

  /// Sums are exact, each rounded once to its type.
  @Test
  void linksOfSeveralTypesVerify() {
    LocalRanks.run(
        2,
        world -> {
          var comm = Collectives.on(world);
          for (var type : List.of(DType.FP32, DType.BF16, DType.FP16)) {
            try (var x = SymmetricTensor.on(world).shape(35).dtype(type).allocate();
                var y = SymmetricTensor.on(world).shape(35).dtype(type).allocate()) {
              var values = new float[35];
              IntStream.range(0, 35).forEach(i -> values[i] = (float) Math.sin(i + world.rank()));
              x.local().copyFrom(values);
              var links =
                  new ArrayList<>(
                      List.of(
                          comm.link(c -> c.allReduce(x, y)),
                          comm.oneShot().link(c -> c.allReduce(x, x))));
              var verified = Chain.of(links.getFirst(), links.getLast()).verify();
              assertThat(verified.exact()).isEqualTo(2 * 2 * 35);
            }
          }
        });
  }

  @Test
  void wrongUsesAreRefused() {
    LocalRanks.run(
        2,
        world -> {
          try (var x = tensor(world, ROWS);
              var y = tensor(world, 2 * ROWS);
              var up =
                  Pipeline.on(world)
                      .gemm(GemmSpec.allGatherGemm(2 * ROWS, 6, COLUMNS))
                      .overlap(Overlap.ring(1))
                      .input(x)
                      .build()) {
            var comm = Collectives.on(world);
            refused(() -> comm.link(_ -> {}), "called 0");
            refused(
                () ->
                    comm.link(
                        c -> {
                          c.barrier();
                          c.barrier();
                        }),
                "called 2");
            refused(() -> comm.link(c -> c.allGather(x)), "allocate y");
            refused(() -> comm.link(c -> c.send(x, 1)), "call it outside the chain");
            refused(() -> comm.link(c -> c.allReduce(x, y)), "y must be");
            refused(
                () -> Chain.on(world).then(up, comm.link(c -> c.broadcast(x, 0))),
                "side by side must not share");
            var link = comm.link(c -> c.allGather(x, y));
            refused(() -> Chain.of(link, link), "in the chain already");
            var started = Chain.of(link).start();
            refused(() -> Chain.of(link).run(), "was started and not awaited");
            started.await();
            Chain.of(link).run();
            var gone = linkOfAClosedTensor(comm, x);
            refused(() -> Chain.of(gone), "closed");
          }
        });
  }

  private static CollectiveLink linkOfAClosedTensor(Collectives comm, SymmetricTensor x) {
    try (var y = tensor(x.group(), 2 * ROWS)) {
      return comm.link(c -> c.allGather(x, y));
    }
  }

  private static void refused(Runnable call, String text) {
    assertThatThrownBy(call::run).isInstanceOf(BraidException.class).hasMessageContaining(text);
  }

  /// Ranks that run different chains get an error that names both, and go on.
  @Test
  void differentLinksAreNamed() {
    LocalRanks.run(
        2,
        world -> {
          try (var x = tensor(world, ROWS);
              var y = tensor(world, 2 * ROWS)) {
            var comm = Collectives.on(world);
            var gather = Chain.of(comm.link(c -> c.allGather(x, y)));
            var add = Chain.of(comm.link(c -> c.allReduce(x, x)));
            gather.run();
            assertThatThrownBy(world.rank() == 0 ? gather::run : add::run)
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("all-gather")
                .hasMessageContaining("all-reduce");
            fill(x, world.rank());
            world.barrier();
            Collectives.on(world).allGather(x, y);
            assertThat(y.local().toFloats()[ROWS * COLUMNS]).isEqualTo(given(1, 0));
          }
        });
  }
}
