package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.Place;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ProcessGroupTest {
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 5})
  void gathersAndBroadcastsSmallValues(int ranks) {
    LocalRanks.run(
        ranks,
        world -> {
          int root = ranks - 1;
          assertThat(world.gather((long) world.rank())).hasSize(ranks).contains(root);
          assertThat(world.gather("r" + world.rank())).hasSize(ranks).endsWith("r" + root);
          // More numbers than one meeting takes.
          try (var tensor = LocalTensor.on(world).shape(3, 100_001).allocate()) {
            tensor.view().fill(world.rank() + 0.25f);
            tensor.view().set(7, 2, 100_000);
            var gathered = world.gather(tensor.view());
            assertThat(gathered).hasSize(ranks);
            for (int rank = 0; rank < ranks; rank++) {
              var expected = new float[300_003];
              Arrays.fill(expected, rank + 0.25f);
              expected[300_002] = 7;
              assertThat(gathered.get(rank)).isEqualTo(expected);
            }
          }
          assertThat(world.gather(world.rank() + 0.5)).hasSize(ranks).contains(root + 0.5);
          assertThat(world.gather(new byte[] {(byte) world.rank()}).get(root))
              .containsExactly(root);
          assertThat(world.broadcast("from " + world.rank(), root)).isEqualTo("from " + root);
          assertThat(world.broadcast(Long.MIN_VALUE + world.rank(), root))
              .isEqualTo(Long.MIN_VALUE + root);
          assertThat(world.broadcast(Math.PI * world.rank(), root)).isEqualTo(Math.PI * root);
          world.barrier();
        });
  }

  @Test
  void aGatheredValueIsNobodyElsesArray() {
    LocalRanks.run(
        2,
        world -> {
          var values = world.gather(new byte[] {1});
          values.get(0)[0] = (byte) (2 + world.rank());
          world.barrier();
          assertThat(values.get(0)[0]).isEqualTo((byte) (2 + world.rank()));
        });
  }

  @Test
  void a6AGroupAskedForTwiceIsTheSameGroup() {
    LocalRanks.run(
        3,
        world -> {
          assertThat(ProcessGroup.world()).isSameAs(world);
          var pair = world.subset("pair", 2, 0);
          assertThat(world.subset("pair", 0, 2)).isSameAs(pair);
          assertThat(pair.members()).containsExactly(0, 2);
          assertThatThrownBy(() -> world.subset("pair", 0, 1))
              .hasMessage(
                  "group `pair` has ranks 0, 2 but was requested with 0, 1; close it first, or use another name");
        });
  }

  @Test
  void a6OnlyMembersUseAGroup() {
    LocalRanks.run(
        3,
        world -> {
          var pair = world.subset("pair", 0, 2);
          if (world.rank() == 1) {
            assertThat(pair.isMember()).isFalse();
            assertThatThrownBy(pair::barrier)
                .hasMessage(
                    "group `pair` has ranks 0, 2 but this is rank 1; use it on its members only");
          } else {
            assertThat(pair.place()).isEqualTo(new Place(world.rank() / 2, 2));
            assertThat(pair.gather((long) world.rank())).containsExactly(0, 2);
          }
        });
  }

  @Test
  void a6ClosingForgetsEveryNameAndASuccessorIsAnotherGroup() {
    LocalRanks.run(
        2,
        world -> {
          var pair = world.subset("pair", 0, 1);
          var inner = pair.subset("inner", world.rank());
          inner.barrier();
          pair.close();
          pair.close();
          assertThatThrownBy(pair::barrier)
              .hasMessage("group `pair` is closed; get it again with subset(...)");
          assertThatThrownBy(inner::barrier).hasMessageContaining("group `pair.inner` is closed");
          var successor = world.subset("pair", 0, 1);
          assertThat(successor).isNotSameAs(pair);
          assertThat(successor.gather((long) world.rank())).containsExactly(0, 1);
        });
  }

  @Test
  void aGroupClosesItsResourcesLatestFirst() {
    LocalRanks.run(
        1,
        world -> {
          List<String> closed = new ArrayList<>();
          world.own(() -> closed.add("first"));
          world.own(() -> closed.add("second"));
          world.close();
          world.close();
          assertThat(closed).containsExactly("second", "first");
          assertThatThrownBy(world::barrier)
              .hasMessage("group `world` is closed; get it again with ProcessGroup.world()");
          ProcessGroup.world().barrier();
        });
  }

  @Test
  void a7MembersOfDifferentGroupsDoNotWaitForEachOther() {
    LocalRanks.run(
        4,
        world -> {
          var mine = world.subset("of" + world.rank() / 2, world.rank() & ~1, world.rank() | 1);
          // Calls that the other group does not make.
          for (int i = 0; i < 10 * (world.rank() / 2); i++) {
            mine.barrier();
          }
          world.barrier();
        });
  }

  @Test
  void a8AWorldOfOneNeedsNothing() {
    // No environment is set: this JVM is a world of one rank.
    try (var world = ProcessGroup.world()) {
      assertThat(world.place()).isEqualTo(new Place(0, 1));
      assertThat(world.gather(5L)).containsExactly(5);
    }
  }

  @Test
  void ranksThatCallDifferentThingsAreTold() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      if (world.rank() == 0) {
                        world.barrier();
                      } else {
                        var _ = world.gather(1L);
                      }
                    }))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("called barrier in group `world`")
        .hasMessageContaining("called gather of longs in group `world`");
  }

  @Test
  void badNamesAndRanksAreRefused() {
    LocalRanks.run(
        2,
        world -> {
          assertThatThrownBy(() -> world.subset("a/b", 0))
              .hasMessage(
                  "a group's name must be 1 to 64 letters, digits, - or _, and not world, but was `a/b`");
          assertThatThrownBy(() -> world.subset("x"))
              .hasMessage("group `x` needs 1 or more ranks, each once, but was given []");
          assertThatThrownBy(() -> world.subset("x", 1, 1))
              .hasMessage("group `x` needs 1 or more ranks, each once, but was given [1, 1]");
          assertThatThrownBy(() -> world.subset("x", 0, 2))
              .hasMessage(
                  "ranks of group `x` must be 0..1 (those of group `world`) but were [0, 2]");
          assertThatThrownBy(() -> world.broadcast(1L, 2))
              .hasMessage("the root of a broadcast in group `world` must be 0..1 but was 2");
        });
  }

  @Test
  void countersOfCodeAreThoseThatItRaises() {
    LocalRanks.run(
        2,
        world -> {
          assertThat(world.counters(() -> {})).isEmpty();
          assertThat(
                  world.counters(
                      () -> {
                        world.barrier();
                        world.barrier();
                      }))
              .containsExactly(Map.entry("meetings", 2L));
          assertThat(world.onGpu()).isFalse();
        });
  }

  @Test
  void aGroupOfTooFewRanksIsRefusedWithAWayToStartMore() {
    LocalRanks.run(
        1,
        world -> {
          world.require(1);
          assertThatThrownBy(() -> world.require(2))
              .isInstanceOf(BraidException.class)
              .hasMessage(
                  "this needs at least 2 ranks but the world has 1: one rank has nothing to communicate; try -n 4 --share-gpus on one GPU, or -n 4 --backend host");
        });
    LocalRanks.run(
        2,
        world -> {
          world.require(2);
          assertThatThrownBy(() -> world.require(6))
              .hasMessage(
                  "this needs at least 6 ranks but the world has 2; try -n 6 --share-gpus on one GPU, or -n 6 --backend host");
          var pair = world.subset("pair", 0, 1);
          assertThatThrownBy(() -> pair.require(3))
              .hasMessage(
                  "this needs at least 3 ranks but group `pair` has 2; make it of more ranks");
        });
  }
}
