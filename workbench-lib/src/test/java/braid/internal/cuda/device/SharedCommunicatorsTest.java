package braid.internal.cuda.device;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.cuda.ThreadMembers;
import braid.internal.cuda.device.Communicators.Policy;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Three ranks with communicators that only note when they are closed.
class SharedCommunicatorsTest {
  private record Noted(String name, List<String> closed) implements AutoCloseable {
    @Override
    public void close() {
      closed.add(name);
    }
  }

  private static final class Rank {
    private final SharedCommunicators<Noted> shared = new SharedCommunicators<>();
    private final List<String> closed = new ArrayList<>();

    SharedCommunicators.Lease<Noted> add(SharedCommunicators.Key key, String name) {
      return shared.add(key, name, new Noted(name, closed));
    }
  }

  private static final SharedCommunicators.Key PAIR =
      new SharedCommunicators.Key(List.of(0, 1), Policy.MULTIPROCESSORS, "");
  private static final SharedCommunicators.Key ALL =
      new SharedCommunicators.Key(List.of(0, 1, 2), Policy.COPY_ENGINES, "");

  private final List<Rank> ranks = IntStream.range(0, 3).mapToObj(_ -> new Rank()).toList();

  private List<SharedCommunicators.Lease<Noted>> addPair(String name) {
    return PAIR.ranks().stream().map(rank -> ranks.get(rank).add(PAIR, name)).toList();
  }

  /// Lets the ranks meet, as a set-up of memory does.
  private void meet(Integer... members) {
    var received =
        ThreadMembers.run(
            List.of(members),
            (rank, rendezvous) -> {
              var meeting = ranks.get(rank).shared.closingUnused(rendezvous);
              var first = meeting.exchange("first", "a,b;" + rank);
              return List.of(first, meeting.exchange("second", ";" + rank));
            });
    assertThat(received)
        .containsOnly(
            List.of(
                List.of(members).stream().map(rank -> "a,b;" + rank).toList(),
                List.of(members).stream().map(rank -> ";" + rank).toList()));
  }

  @Test
  void d3ACommunicatorIsClosedAfterItsLastUserOfAllRanks() {
    var pipelines = addPair("a");
    var tensors =
        PAIR.ranks().stream()
            .map(rank -> ranks.get(rank).shared.lease(PAIR).orElseThrow())
            .toList();
    pipelines.forEach(SharedCommunicators.Lease::close);
    meet(0, 1);
    assertThat(ranks.get(0).closed).as("the tensors still use it").isEmpty();
    tensors.get(0).close();
    meet(0, 1);
    assertThat(ranks.get(0).closed).as("rank 1 still uses it").isEmpty();
    tensors.get(1).close();
    assertThat(ranks.get(1).closed).as("closing a user waits for nobody").isEmpty();
    meet(0, 1);
    assertThat(ranks)
        .extracting(rank -> rank.closed)
        .containsExactly(List.of("a"), List.of("a"), List.of());
    assertThat(ranks.get(0).shared.id(PAIR)).isEmpty();
  }

  @Test
  void d3CommunicatorsAreClosedInTheOrderOfTheirCreation() {
    var all = ranks.stream().map(rank -> rank.add(ALL, "all")).toList();
    var pair = addPair("pair");
    pair.forEach(SharedCommunicators.Lease::close);
    all.forEach(SharedCommunicators.Lease::close);
    meet(0, 1, 2);
    assertThat(ranks)
        .extracting(rank -> rank.closed)
        .containsExactly(List.of("all", "pair"), List.of("all", "pair"), List.of("all"));
  }

  @Test
  void d3ACommunicatorIsClosedOnlyWhereAllItsRanksMeet() {
    addPair("pair").forEach(SharedCommunicators.Lease::close);
    meet(0, 2);
    assertThat(ranks.get(0).closed).isEmpty();
    meet(0, 1, 2);
    assertThat(ranks.get(0).closed).containsExactly("pair");
  }

  @Test
  void aChannelIsKeptWithoutUsers() {
    var key = new SharedCommunicators.Key(List.of(0, 1), Policy.MULTIPROCESSORS, "copies");
    var leases = key.ranks().stream().map(rank -> ranks.get(rank).add(key, "channel")).toList();
    leases.forEach(SharedCommunicators.Lease::close);
    meet(0, 1);
    assertThat(ranks.get(0).closed).isEmpty();
    assertThat(ranks.get(1).shared.id(key)).contains("channel");
  }

  @Test
  void aUseThatEndsTwiceEndsOnce() {
    var first = addPair("a");
    var second = ranks.get(0).shared.lease(PAIR).orElseThrow();
    first.forEach(SharedCommunicators.Lease::close);
    first.forEach(SharedCommunicators.Lease::close);
    meet(0, 1);
    assertThat(ranks.get(0).closed).isEmpty();
    second.close();
    meet(0, 1);
    assertThat(ranks.get(0).closed).containsExactly("a");
  }

  @Test
  void aUseOfALostCommunicatorLeavesItsSuccessorAlone() {
    var lost = addPair("a");
    PAIR.ranks().forEach(rank -> ranks.get(rank).shared.removeAll());
    var next = addPair("b");
    lost.forEach(SharedCommunicators.Lease::close);
    meet(0, 1);
    assertThat(ranks.get(0).closed).isEmpty();
    next.forEach(SharedCommunicators.Lease::close);
    meet(0, 1);
    assertThat(ranks.get(0).closed).containsExactly("b");
  }
}
