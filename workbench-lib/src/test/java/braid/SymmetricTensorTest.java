package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.MemoryKind;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class SymmetricTensorTest {
  @ParameterizedTest
  @EnumSource(DType.class)
  void a5EveryRankSeesEveryPart(DType dtype) {
    LocalRanks.run(
        3,
        world -> {
          try (var x = SymmetricTensor.on(world).shape(2, 5).dtype(dtype).name("x").allocate()) {
            assertThat(x.local().toFloats()).containsOnly(0);
            x.local().fill(world.rank() + 1);
            world.barrier();
            assertThat(x.on(2).toFloats()).hasSize(10).containsOnly(3);
            assertThat(x.all().shape()).containsExactly(3L, 2L, 5L);
            assertThat(x.all().get(1, 1, 4)).isEqualTo(2);
            world.barrier();
            if (world.rank() == 1) {
              x.multicast().rows(0, 1).copyFrom(4, 5, 6, 7, 8);
            }
            world.barrier();
            assertThat(x.local().get(0, 3)).isEqualTo(7);
            assertThat(x.local().get(1, 3)).isEqualTo(world.rank() + 1);
            assertThat(x)
                .hasToString(
                    "symmetric tensor `x` 2x5 %s native on group `world` of ranks 0, 1, 2"
                        .formatted(dtype));
          }
        });
  }

  @Test
  void a2AnExplicitKindThatCannotBeHadSaysWhy() {
    LocalRanks.run(
        1,
        world -> {
          assertThatThrownBy(
                  () -> SymmetricTensor.on(world).shape(1).memory(MemoryKind.NCCL).allocate())
              .hasMessage(
                  "memory kind nccl needs CUDA but the backend is host; use native or auto");
          assertThat(SymmetricTensor.on(world).shape(1).memory(MemoryKind.AUTO).allocate().kind())
              .isEqualTo(MemoryKind.NATIVE);
        });
  }

  @Test
  void a5BadShapesAreRefusedAtTheCall() {
    LocalRanks.run(
        1,
        world -> {
          var tensor = SymmetricTensor.on(world);
          assertThatThrownBy(tensor::allocate)
              .hasMessage("shape is missing; call shape(rows, columns) before allocate()");
          assertThatThrownBy(() -> tensor.shape())
              .hasMessageStartingWith("shape needs 1 or more sizes but has none");
          assertThatThrownBy(() -> tensor.shape(4, 0))
              .hasMessage("every size of shape must be 1 or more but it was 4x0");
          assertThatThrownBy(() -> tensor.shape(-1))
              .hasMessage("every size of shape must be 1 or more but it was -1");
          tensor.shape(Long.MAX_VALUE, 2);
          assertThatThrownBy(tensor::allocate)
              .hasMessageEndingWith("must be less than 2^63 bytes; is it in elements?");
          assertThatThrownBy(() -> tensor.shape(1))
              .hasMessage("shape was set already: [9223372036854775807, 2]; set it once");
        });
  }

  @Test
  void a7DifferentShapesOnTheRanksAreToldAndHangNobody() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      var _ =
                          SymmetricTensor.on(world).shape(2 + world.rank()).name("x").allocate();
                    }))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "allocate `x` in group `world`: ranks must agree but rank 0 has 2 fp32 native,"
                + " rank 1 has 3 fp32 native; pass the same value on every rank");
  }

  @Test
  void a9AFailedAllocationCanBeRepeated() {
    LocalRanks.run(
        2,
        world -> {
          var tensor = SymmetricTensor.on(world).shape(1L << 45).name("x");
          assertThatThrownBy(tensor::allocate)
              .isInstanceOf(BraidException.class)
              .hasMessageContaining("needs 140737488355328 bytes per rank in /dev/shm");
          try (var x = SymmetricTensor.on(world).shape(8).name("x").allocate()) {
            x.local().fill(1);
            world.barrier();
            assertThat(x.all().toFloats()).containsOnly(1);
          }
        });
  }

  @Test
  void aClosedTensorIsRefusedByName() {
    LocalRanks.run(
        1,
        world -> {
          var x = SymmetricTensor.on(world).shape(2).name("x").allocate();
          var view = x.local();
          x.close();
          x.close();
          assertThatThrownBy(x::local)
              .hasMessage("symmetric tensor `x` is closed; allocate it again");
          assertThatThrownBy(() -> view.get(0))
              .isInstanceOf(BraidException.class)
              .hasMessage("symmetric tensor `x` is closed; allocate it again");
          assertThatThrownBy(() -> view.set(1, 0)).hasMessageStartingWith("symmetric tensor `x`");
          assertThatThrownBy(() -> view.fill(1)).hasMessageStartingWith("symmetric tensor `x`");
          assertThatThrownBy(view::toFloats).hasMessageStartingWith("symmetric tensor `x`");
          assertThatThrownBy(view::segment).hasMessageStartingWith("symmetric tensor `x`");
          assertThatThrownBy(() -> view.rows(0, 1).get(0))
              .hasMessageStartingWith("symmetric tensor `x`");
          assertThat(view)
              .hasToString("2 fp32 [symmetric tensor `x` is closed; allocate it again]");
        });
  }
}
