package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.DType;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Messages between two ranks.
class MessagesTest {
  private final Map<Integer, String> errors = new ConcurrentHashMap<>();

  @FunctionalInterface
  private interface Body {
    void run(ProcessGroup world, Collectives comm, SymmetricTensor x, SymmetricTensor y);
  }

  private void onEachRank(int ranks, Body body) {
    LocalRanks.run(
        ranks,
        world -> {
          var comm = Collectives.on(world);
          try (var x = tensor(world, "x", DType.FP32, 4);
              var y = tensor(world, "y", DType.FP32, 4)) {
            x.local().fill(world.rank() + 1);
            try {
              body.run(world, comm, x, y);
            } catch (BraidException e) {
              errors.put(world.rank(), e.getMessage());
            }
            // No rank closes a tensor that others still read after an error.
            world.barrier();
          }
        });
  }

  private static SymmetricTensor tensor(
      ProcessGroup group, String name, DType dtype, long... shape) {
    return SymmetricTensor.on(group).shape(shape).dtype(dtype).name(name).allocate();
  }

  @Test
  void aPairInBothOrdersWhileOthersDoNothing() {
    onEachRank(
        4,
        (world, comm, x, y) -> {
          for (int i = 0; i < 50; i++) {
            x.local().fill(10 * i + world.rank());
            if (world.rank() == 1) {
              comm.send(x, 3);
              x.local().fill(-1);
              comm.receive(y, 3);
              assertThat(y.local().toFloats()).containsOnly(10 * i + 3);
            } else if (world.rank() == 3) {
              comm.receive(y, 1);
              assertThat(y.local().toFloats()).containsOnly(10 * i + 1);
              comm.send(x, 1);
            }
          }
        });
    assertThat(errors).isEmpty();
  }

  @Test
  void messagesOfEachPairKeepTheirOrder() {
    onEachRank(
        3,
        (world, comm, x, y) -> {
          if (world.rank() == 0) {
            for (int i = 0; i < 10; i++) {
              comm.receive(y, 2);
              assertThat(y.local().get(0)).isEqualTo(200 + i);
            }
            for (int i = 0; i < 10; i++) {
              comm.receive(y, 1);
              assertThat(y.local().get(0)).isEqualTo(100 + i);
            }
          } else {
            for (int i = 0; i < 10; i++) {
              x.local().fill(100 * world.rank() + i);
              comm.send(x, 0);
            }
          }
        });
    assertThat(errors).isEmpty();
  }

  @Test
  void ringsPassInBothDirections() {
    for (int ranks = 2; ranks <= 4; ranks++) {
      int size = ranks;
      onEachRank(
          ranks,
          (world, comm, x, y) -> {
            for (int step = 1; step < 2 * size; step++) {
              int to = Math.floorMod(world.rank() + step, size);
              int from = Math.floorMod(world.rank() - step, size);
              if (to != world.rank()) {
                comm.sendReceive(x, to, y, from);
                assertThat(y.local().toFloats()).containsOnly(from + 1);
              }
            }
          });
      assertThat(errors).isEmpty();
    }
  }

  @Test
  void aRingThatBeginsSomewhere() {
    onEachRank(
        3,
        (world, comm, x, y) -> {
          if (world.rank() == 0) {
            comm.send(x, 1);
            comm.receive(y, 2);
            assertThat(y.local().get(0)).isEqualTo(1);
          } else {
            comm.receive(y, world.rank() - 1);
            comm.send(y, (world.rank() + 1) % 3);
          }
        });
    assertThat(errors).isEmpty();
  }

  @Test
  void ranksThatAllSendFirstAreNamed() {
    onEachRank(3, (world, comm, x, y) -> comm.send(x, (world.rank() + 1) % 3));
    assertThat(errors).containsOnlyKeys(0, 1, 2);
    assertThat(errors.values())
        .containsOnly(
            "ranks wait for each other: rank 0 waits for rank 1 to receive `x` 4 fp32, rank 1 waits"
                + " for rank 2 to receive `x` 4 fp32, rank 2 waits for rank 0 to receive `x` 4 fp32;"
                + " call sendReceive(x, to, y, from) on every rank");
  }

  @Test
  void ranksThatAllReceiveFirstAreNamed() {
    onEachRank(2, (world, comm, x, y) -> comm.receive(y, 1 - world.rank()));
    assertThat(errors).containsOnlyKeys(0, 1);
    assertThat(errors.values())
        .containsOnly(
            "ranks wait for each other: rank 0 waits for rank 1 to send `y` 4 fp32, rank 1 waits for"
                + " rank 0 to send `y` 4 fp32; call sendReceive(x, to, y, from) on every rank");
  }

  @Test
  void anUnfittingMessageFailsBothRanksAndTheNextArrives() {
    onEachRank(
        2,
        (world, comm, x, y) -> {
          var wide = tensor(world, "wide", DType.BF16, 2, 4);
          if (world.rank() == 0) {
            assertThatThrownBy(() -> comm.send(wide, 1))
                .hasMessage(
                    "send of `wide` 2x4 bf16 to rank 1 in group `world`: rank 1 receives into `y` 4"
                        + " fp32");
            comm.send(x, 1);
          } else {
            assertThatThrownBy(() -> comm.receive(y, 0))
                .hasMessage(
                    "receive into `y` 4 fp32 from rank 0 in group `world`: rank 0 sent `wide` 2x4"
                        + " bf16; receive into 2x4 bf16");
            comm.receive(y, 0);
            assertThat(y.local().toFloats()).containsOnly(1);
          }
          comm.barrier();
        });
    assertThat(errors).isEmpty();
  }

  @Test
  void bothPartsOfASendReceiveThatDoNotFitAreTold() {
    onEachRank(
        2,
        (world, comm, x, y) -> {
          var other = tensor(world, "other", DType.FP32, 5);
          comm.sendReceive(world.rank() == 0 ? x : other, 1 - world.rank(), y, 1 - world.rank());
        });
    assertThat(errors)
        .containsEntry(
            0,
            "sendReceive of `x` 4 fp32 to rank 1 and into `y` 4 fp32 from rank 1 in group `world`:"
                + " rank 1 sent `other` 5 fp32; receive into 5 fp32")
        .containsEntry(
            1,
            "sendReceive of `other` 5 fp32 to rank 0 and into `y` 4 fp32 from rank 0 in group"
                + " `world`: rank 0 receives into `y` 4 fp32");
  }

  @Test
  void aTensorThatTheReceiverHasClosed() {
    onEachRank(
        2,
        (world, comm, x, y) -> {
          var gone = tensor(world, "gone", DType.FP32, 4);
          if (world.rank() == 0) {
            comm.send(gone, 1);
          } else {
            gone.close();
            comm.receive(y, 0);
          }
        });
    assertThat(errors)
        .containsEntry(
            0,
            "send of `gone` 4 fp32 to rank 1 in group `world`: `gone` 4 fp32 is closed on rank 1;"
                + " close it after it was received")
        .containsEntry(
            1,
            "receive into `y` 4 fp32 from rank 0 in group `world`: `gone` 4 fp32 is closed on rank"
                + " 1; close it after it was received");
  }

  @Test
  void aTensorOfTooManyDimensionsIsRefused() {
    onEachRank(
        2,
        (world, comm, x, y) -> {
          var sizes = new long[230];
          Arrays.fill(sizes, 1);
          try (var flat = tensor(world, "flat", DType.FP32, sizes)) {
            comm.send(flat, 1 - world.rank());
          }
        });
    assertThat(errors.values())
        .hasSize(2)
        .containsOnly(
            "a message header must fit in 444 bytes but the name, type and shape of `flat` take"
                + " 473; send it with a shorter name or fewer dimensions");
  }

  @Test
  void oneTensorIsNotSentAndReceivedIntoAtOnce() {
    onEachRank(
        2, (world, comm, x, y) -> comm.sendReceive(x, 1 - world.rank(), x, 1 - world.rank()));
    assertThat(errors.values())
        .hasSize(2)
        .allSatisfy(
            message ->
                assertThat(message)
                    .isEqualTo(
                        "sendReceive in group `world`: x and y must be two tensors, since others"
                            + " still read x when y is written, but both are `x`; allocate another"
                            + " for y"));
  }

  @Test
  void aTensorWithTheLongestName() {
    onEachRank(
        2,
        (world, comm, x, y) -> {
          var named = tensor(world, "\uD83D\uDE80".repeat(64), DType.FP32, 4);
          if (world.rank() == 0) {
            named.local().fill(7);
            comm.send(named, 1);
          } else {
            comm.receive(y, 0);
            assertThat(y.local().toFloats()).containsOnly(7);
          }
        });
    assertThat(errors).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void aRingOfAnySizeSendsToTheNextAndReceivesFromThePrevious(int ranks) {
    LocalRanks.run(
        ranks,
        world -> {
          var comm = Collectives.on(world);
          int next = (world.rank() + 1) % ranks;
          int previous = (world.rank() + ranks - 1) % ranks;
          try (var x = SymmetricTensor.on(world).shape(5).name("x").allocate();
              var y = SymmetricTensor.on(world).shape(5).name("y").allocate()) {
            for (int round = 0; round < 3; round++) {
              x.local().fill(10 * round + world.rank());
              y.local().fill(Float.NaN);
              comm.sendReceive(x, next, y, previous);
              x.local().fill(Float.NaN);
              assertThat(y.local().toFloats()).containsOnly(10 * round + previous);
            }
          }
        });
  }

  @Test
  void aRankAloneSendsAndReceivesInOrderAsTheRanksOfALargerRingDo() {
    LocalRanks.run(
        1,
        world -> {
          var comm = Collectives.on(world);
          try (var x = SymmetricTensor.on(world).shape(5).name("x").allocate();
              var y = SymmetricTensor.on(world).shape(5).name("y").allocate();
              var other = SymmetricTensor.on(world).shape(4).name("other").allocate()) {
            for (int i = 1; i <= 3; i++) {
              x.local().fill(i);
              comm.send(x, 0);
            }
            x.local().fill(Float.NaN);
            for (int i = 1; i <= 2; i++) {
              comm.receive(y, 0);
              assertThat(y.local().toFloats()).containsOnly(i);
            }
            assertThatThrownBy(() -> comm.receive(other, 0))
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("rank 0 sent `x` 5 fp32; receive into 5 fp32");
            assertThatThrownBy(() -> comm.receive(y, 0))
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("this rank has sent nothing to itself; send before");
            // A message that is never received is freed with the group.
            comm.send(x, 0);
          }
        });
  }
}
