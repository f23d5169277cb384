package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.DType;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LocalTensorTest {
  private static LocalTensor.Builder builder(ProcessGroup world, boolean pinned) {
    var builder = LocalTensor.on(world);
    return pinned ? builder.pinned() : builder;
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void isOfOneRankAndBeginsAsZeroes(boolean pinned) {
    LocalRanks.run(
        2,
        world -> {
          // Only one rank allocates it: no rank waits.
          if (world.rank() == 1) {
            try (var x = builder(world, pinned).shape(2, 3).dtype(DType.BF16).allocate()) {
              assertThat(x.isPinned()).isEqualTo(pinned);
              assertThat(x.shape()).containsExactly(2L, 3L);
              assertThat(x.view().toFloats()).containsOnly(0);
              x.view().fillIntegers(5);
              try (var y = LocalTensor.on(world).shape(6).dtype(DType.BF16).allocate()) {
                assertThat(y.view().copyFrom(x.view()).toFloats())
                    .containsExactly(x.view().toFloats());
              }
            }
          }
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aClosedTensorIsRefusedByName(boolean pinned) {
    LocalRanks.run(
        1,
        world -> {
          var x = builder(world, pinned).shape(4).allocate();
          var view = x.view();
          x.close();
          x.close();
          assertThatThrownBy(() -> view.get(0))
              .hasMessageContaining("local tensor 4 fp32 is closed");
          assertThatThrownBy(x::view).hasMessageContaining("allocate it again");
          var owned = world.subset("some", 0);
          var kept = builder(owned, pinned).shape(4).allocate();
          owned.close();
          assertThatThrownBy(kept::view).hasMessageContaining("is closed");
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aMissingOrRepeatedOptionIsOneLine(boolean pinned) {
    LocalRanks.run(
        1,
        world -> {
          assertThatThrownBy(() -> builder(world, pinned).allocate())
              .hasMessageContaining("shape is missing");
          assertThatThrownBy(() -> builder(world, pinned).shape(2, 0))
              .hasMessageContaining("each 1 or more, but was [2, 0]");
          assertThatThrownBy(() -> LocalTensor.on(world).shape(1).shape(1))
              .hasMessageContaining("shape was set already");
          assertThatThrownBy(() -> LocalTensor.on(world).pinned().pinned())
              .hasMessageContaining("pinned was set already");
        });
  }
}
