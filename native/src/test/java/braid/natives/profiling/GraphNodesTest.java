package braid.natives.profiling;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class GraphNodesTest {
  private final GraphNodes nodes = new GraphNodes();

  @Test
  void aClaimTakesTheNodesSinceTheLastOne() {
    nodes.created(1);
    nodes.created(2);
    assertThat(nodes.claim(10)).isEqualTo(2);
    nodes.created(3);
    assertThat(nodes.claim(11)).isEqualTo(1);
    assertThat(nodes.claim(12)).isZero();
    assertThat(nodes.ownerOf(1)).isEqualTo(10);
    assertThat(nodes.ownerOf(2)).isEqualTo(10);
    assertThat(nodes.ownerOf(3)).isEqualTo(11);
  }

  @Test
  void anUnclaimedNodeHasNoOwner() {
    nodes.created(1);
    nodes.claim(GraphNodes.UNKNOWN);
    nodes.created(2);
    nodes.claim(10);
    assertThat(nodes.ownerOf(1)).isEqualTo(GraphNodes.UNKNOWN);
    assertThat(nodes.ownerOf(99)).isEqualTo(GraphNodes.UNKNOWN);
  }

  @Test
  void aCopyHasTheOwnerOfItsOriginalEvenIfClaimedLater() {
    nodes.created(1);
    nodes.created(2);
    nodes.cloned(2, 1);
    nodes.cloned(3, 2);
    assertThat(nodes.claim(10)).isEqualTo(1);
    assertThat(nodes.ownerOf(3)).isEqualTo(10);
  }

  @Test
  void aCopyOfItselfEnds() {
    nodes.cloned(5, 5);
    assertThat(nodes.ownerOf(5)).isEqualTo(GraphNodes.UNKNOWN);
  }
}
