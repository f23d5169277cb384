package braid.internal.report.statistics;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class RoundsTest {
  private static List<Integer> order(long seed, int candidates, int repeats) {
    var order = new ArrayList<Integer>();
    var timed = IntStream.range(0, candidates).<Rounds.Candidate>mapToObj(_ -> () -> 1).toList();
    new Rounds(timed, seed).measure(repeats, order::add);
    return order;
  }

  @Test
  void everyRoundMeasuresEachCandidateOnce() {
    var order = order(42, 5, 8);
    for (int round = 0; round < 8; round++) {
      assertThat(order.subList(round * 5, round * 5 + 5)).containsExactlyInAnyOrder(0, 1, 2, 3, 4);
    }
  }

  @Test
  void theSeedDecidesTheOrderAndRoundsDiffer() {
    assertThat(order(42, 7, 6)).isEqualTo(order(42, 7, 6)).isNotEqualTo(order(43, 7, 6));
    var order = order(42, 7, 2);
    assertThat(order.subList(0, 7)).isNotEqualTo(order.subList(7, 14));
  }

  @Test
  void timesLandInTheCandidatesOwnRowInTheOrderOfRounds() {
    var calls = new int[2];
    var rounds = new Rounds(List.of(() -> 10 + calls[0]++, () -> 20 + calls[1]++), 1);
    rounds.measure(3, _ -> {});
    assertThat(rounds.nanos()[0]).containsExactly(10, 11, 12);
    assertThat(rounds.nanos()[1]).containsExactly(20, 21, 22);
  }

  @Test
  void roundsThatAreAddedGoOnWhereTheOthersEnded() {
    var order = new ArrayList<Integer>();
    var timed = IntStream.range(0, 7).<Rounds.Candidate>mapToObj(c -> () -> 1 + c).toList();
    var rounds = new Rounds(timed, 42);
    rounds.measure(2, order::add);
    rounds.measure(4, order::add);
    assertThat(order).isEqualTo(order(42, 7, 6));
    assertThat(rounds.nanos()[6]).containsExactly(7, 7, 7, 7, 7, 7);
  }
}
