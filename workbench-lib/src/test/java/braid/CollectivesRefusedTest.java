package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.Transport;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/// Calls that collectives refuse, and their messages.
class CollectivesRefusedTest {
  private static SymmetricTensor tensor(ProcessGroup group, String name, long... shape) {
    return SymmetricTensor.on(group).shape(shape).dtype(DType.FP32).name(name).allocate();
  }

  private static void refused(String message, ThrowingCallable call) {
    assertThatThrownBy(call).isExactlyInstanceOf(BraidException.class).hasMessage(message);
  }

  @Test
  void sizesAndTypesThatDoNotFit() {
    LocalRanks.run(
        2,
        world -> {
          var comm = Collectives.on(world);
          var x = tensor(world, "x", 3, 4);
          var y = tensor(world, "y", 4, 4);
          var narrow = SymmetricTensor.on(world).shape(6, 4).dtype(DType.BF16).name("n").allocate();
          refused(
              "all-gather in group `world`: y must be 6x4 (the first size of x times the ranks) for"
                  + " `x` 3x4 on 2 ranks but `y` is 4x4; allocate y as 6x4",
              () -> comm.allGather(x, y));
          refused(
              "all-gather in group `world`: x and y must be of one type but `x` is fp32 and `n` is"
                  + " bf16; allocate y as fp32",
              () -> comm.allGather(x, narrow));
          refused(
              "reduce-scatter in group `world`: the first size of x must divide by the 2 ranks but"
                  + " `x` is 3x4; pad it to 4x4",
              () -> comm.reduceScatter(x));
          refused(
              "reduce-scatter in group `world`: y must be 2x4 (the first size of x divided by the"
                  + " ranks) for `y` 4x4 on 2 ranks but `x` is 3x4; allocate y as 2x4",
              () -> comm.reduceScatter(y, x));
          refused(
              "all-reduce in group `world`: y must be 3x4 (that of x) for `x` 3x4 on 2 ranks but `y`"
                  + " is 4x4; allocate y as 3x4",
              () -> comm.allReduce(x, y));
          refused(
              "all-to-all in group `world`: the first size of x must divide by the 2 ranks but `x`"
                  + " is 3x4; pad it to 4x4",
              () -> comm.allToAll(x));
          refused(
              "all-to-all in group `world`: x and y must be two tensors, since others still read x"
                  + " when y is written, but both are `y`; allocate another for y",
              () -> comm.allToAll(y, y));
          // A refused call does not count as a call.
          comm.barrier();
        });
  }

  @Test
  void tensorsThatAreClosedOrOfAnotherGroup() {
    LocalRanks.run(
        2,
        world -> {
          var comm = Collectives.on(world);
          var pair = world.subset("pair", 0, 1);
          var x = tensor(world, "x", 2);
          var other = tensor(pair, "other", 2);
          var y = tensor(world, "y", 4);
          refused(
              "broadcast in group `world`: tensors must be of the group but `other` is of group"
                  + " `pair`; allocate it on group `world`",
              () -> comm.broadcast(other, 0));
          refused(
              "all-reduce in group `world`: tensors must be of the group but `other` is of group"
                  + " `pair`; allocate it on group `world`",
              () -> comm.allReduce(x, other));
          x.close();
          refused("symmetric tensor `x` is closed; allocate it again", () -> comm.allGather(x, y));
          refused("symmetric tensor `x` is closed; allocate it again", () -> comm.allGather(x));
          refused("symmetric tensor `x` is closed; allocate it again", () -> comm.send(x, 0));
          var ofPair = Collectives.on(pair);
          pair.close();
          refused(
              "group `pair` is closed; get it again with subset(...)",
              () -> ofPair.allReduce(other));
          refused("group `pair` is closed; get it again with subset(...)", ofPair::barrier);
          var again = Collectives.on(world.subset("pair", 0, 1));
          refused(
              "all-reduce in group `pair`: tensors must be of the group but `other` is of group"
                  + " `pair`; allocate it on group `pair`",
              () -> again.allReduce(other));
          again.barrier();
        });
  }

  @Test
  void ranksOutOfRangeAndOptionsThatContradict() {
    LocalRanks.run(
        2,
        world -> {
          var comm = Collectives.on(world);
          var x = tensor(world, "x", 2);
          refused(
              "broadcast in group `world`: the root must be 0..1 but was 2; give a rank of the group",
              () -> comm.broadcast(x, 2));
          refused(
              "send in group `world`: the other rank must be 0..1 but was -1; give a rank of the"
                  + " group, such as (rank + 1) % ranks",
              () -> comm.send(x, -1));
          refused(
              "receive into `x` 2 fp32 from rank %d in group `world`: this rank has sent nothing to"
                      .formatted(world.rank())
                  + " itself; send before it receives",
              () -> comm.receive(x, world.rank()));
          refused(
              "over was called but these collectives use workers already; call over or"
                  + " pushing, once",
              () -> comm.over(Transport.WORKERS).over(Transport.COPY_ENGINE));
          refused(
              "workers are for collectives over workers but these go over copy_engine; call"
                  + " over(WORKERS) first",
              () -> comm.workers(2));
          refused(
              "workers must be 1..128 but was 0; try workers(1)",
              () -> comm.over(Transport.WORKERS).workers(0));
          refused(
              "workers were set already: 2; set them once",
              () -> comm.over(Transport.WORKERS).workers(2).workers(3));
          refused(
              "profile needs 1 or more iterations but was given 0; try profile(10)",
              () -> comm.profile(0, c -> {}));
        });
  }

  @Test
  void aMissingCollectiveIsRefusedAndChangesNothing() {
    LocalRanks.run(
        2,
        world -> {
          var comm = Collectives.on(world);
          var pushing = comm.pushing();
          var x = tensor(world, "x", 2);
          var y = tensor(world, "y", 2);
          refused(
              "all-reduce in group `world`: not available by pushing in native memory (`x`): sums are"
                  + " fetched by the rank that adds them; call over(COPY_ENGINE)",
              () -> pushing.allReduce(x, x));
          refused(
              "reduce-scatter in group `world`: not available by pushing in native memory (`x`): sums"
                  + " are fetched by the rank that adds them; call over(COPY_ENGINE)",
              () -> pushing.reduceScatter(x));
          refused(
              "sendReceive in group `world`: not available by pushing in native memory (`x`): a"
                  + " message is matched and fetched by its receiver; call over(COPY_ENGINE)",
              () -> pushing.sendReceive(x, 1 - world.rank(), y, 1 - world.rank()));
          refused(
              "set up collectives over nccl_kernels in group `world`: rank 0: nccl_kernels needs the"
                  + " cuda backend but the backend is host; use over(COPY_ENGINE)",
              () -> comm.over(Transport.NCCL_KERNELS));
          refused(
              "cublasmp exchanges in multiplications only; call over(NCCL_KERNELS), or tune a"
                  + " pipeline by pipelined(1).over(CUBLASMP)",
              () -> comm.over(Transport.CUBLASMP));
          refused(
              "over was called but these collectives use pushing already; call over or"
                  + " pushing, once",
              () -> pushing.over(Transport.NVSHMEM_PUTS));
          refused(
              "pushing was called but these collectives use workers already; call over or"
                  + " pushing, once",
              () -> comm.over(Transport.WORKERS).pushing());
          refused(
              "workers are for collectives over workers but these go over pushing; call over(WORKERS)"
                  + " first",
              () -> pushing.workers(2));
          comm.allReduce(x, y);
          pushing.barrier();
        });
  }

  @Test
  void ranksThatMakeDifferentCallsAreToldBoth() {
    var told = new ConcurrentHashMap<Integer, String>();
    LocalRanks.run(
        3,
        world -> {
          var comm = Collectives.on(world);
          var x = tensor(world, "x", 3);
          try {
            if (world.rank() == 2) {
              comm.broadcast(x, 0);
            } else {
              comm.allReduce(x, x);
            }
            comm.barrier();
          } catch (BraidException e) {
            told.put(world.rank(), e.getMessage());
          }
        });
    assertThat(told)
        .hasSize(3)
        .allSatisfy(
            (_, message) ->
                assertThat(message)
                    .matches(
                        "all ranks of a group must make the same calls in the same order but rank"
                            + " [01] called all-reduce in group `world` where rank 2 called"
                            + " broadcast in group `world`"));
  }

  @Test
  void anAlgorithmOfAllReduceIsForAllReducesByCopiesAndSaidOnce() {
    LocalRanks.run(
        2,
        world -> {
          var comm = Collectives.on(world);
          var oneShot = comm.oneShot();
          var x = tensor(world, "x", 4);
          var large = tensor(world, "large", (1 << 19) + 1);
          refused(
              "all-gather in group `world`: one-shot is for all-reduces; set it for all-reduces only",
              () -> oneShot.allGather(x));
          refused(
              "reduce-scatter in group `world`: two-shot is for all-reduces; set it for all-reduces only",
              () -> comm.twoShot().reduceScatter(x));
          refused(
              "two-shot was chosen but these all-reduces are one-shot already; choose one of them,"
                  + " once",
              oneShot::twoShot);
          refused(
              "one-shot is for all-reduces by copies but these go over nccl_kernels, which"
                  + " chooses its own algorithm; call over(COPY_ENGINE) or over(WORKERS)",
              () -> oneShot.over(Transport.NCCL_KERNELS));
          refused(
              "all-reduce in group `world`: not available by pushing in native memory (`x`): sums"
                  + " are fetched by the rank that adds them; call over(COPY_ENGINE)",
              () -> oneShot.pushing().allReduce(x, x));
          refused(
              "all-reduce in group `world`: one-shot in place takes at most 2097152 bytes but"
                  + " `large` has 2097156; give another tensor for y, or call twoShot()",
              () -> oneShot.allReduce(large, large));
          oneShot.allReduce(large).close();
          oneShot.barrier();
        });
  }

  @Test
  void ranksThatTakeDifferentAlgorithmsAreTold() {
    var told = new ConcurrentHashMap<Integer, String>();
    LocalRanks.run(
        2,
        world -> {
          var comm = Collectives.on(world);
          var x = tensor(world, "x", 3);
          try {
            (world.rank() == 0 ? comm.oneShot() : comm).allReduce(x, x);
            comm.barrier();
          } catch (BraidException e) {
            told.put(world.rank(), e.getMessage());
          }
        });
    assertThat(told)
        .hasSize(2)
        .allSatisfy(
            (_, message) ->
                assertThat(message)
                    .contains("all-reduce in group `world`: ranks must agree but rank 0 has")
                    .contains("one-shot")
                    .contains("two-shot"));
  }

  @Test
  void ranksThatGiveDifferentTensorsOfOneShapeAreTold() {
    var told = new ConcurrentHashMap<Integer, String>();
    LocalRanks.run(
        2,
        world -> {
          var comm = Collectives.on(world);
          var x = tensor(world, "x", 3);
          var z = tensor(world, "x", 3);
          try {
            comm.allReduce(world.rank() == 0 ? x : z);
            comm.barrier();
          } catch (BraidException e) {
            told.put(world.rank(), e.getMessage());
          }
        });
    assertThat(told)
        .hasSize(2)
        .allSatisfy(
            (_, message) ->
                assertThat(message)
                    .contains("all-reduce in group `world`: ranks must agree but rank 0 has")
                    .contains("`x` 3 fp32 (tensor 1.1)")
                    .contains("`x` 3 fp32 (tensor 1.2)"));
  }

  @Test
  void aSecondThreadOfARankIsRefused() {
    var wasRefused = new CountDownLatch(1);
    LocalRanks.run(
        2,
        world -> {
          var comm = Collectives.on(world);
          if (world.rank() == 1) {
            wasRefused.await();
            comm.barrier();
            return;
          }
          var first = Thread.ofPlatform().name("first").start(comm::barrier);
          while (world.context().waits().current().isEmpty()) {
            Thread.onSpinWait();
          }
          try {
            refused(
                "barrier in group `world` on thread `rank-0`: thread `first` of this rank is in"
                    + " barrier in group `world`; call collectives from one thread, so that all ranks call them in the same order",
                comm::barrier);
          } finally {
            wasRefused.countDown();
          }
          first.join();
        });
  }
}
