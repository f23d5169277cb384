package braid.internal.selftest;

import static org.assertj.core.api.Assertions.assertThat;

import braid.LocalRanks;
import braid.TensorView;
import braid.model.DType;
import braid.model.Fused;
import braid.model.MemoryKind;
import braid.model.Transport;
import braid.schedule.Part;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// Isolated, since OpenBLAS has one number of threads per process: gradients are equal to the last
/// bit only while no other class sets it.
@Isolated
class AttentionCaseTest {
  /// Transports that attention has.
  private static final int COPYING =
      (int) Arrays.stream(Transport.values()).filter(each -> !each.isLibrary()).count();

  private static final int RANKS = 2;

  /// Returns what each rank finds if rank 1 alters the tensor of this number in every round.
  private static List<String> found(AttentionCase tested, int altered) {
    return found(tested, altered, count -> count / 2);
  }

  /// @param place returns the place of the altered number, from the tensor's count
  private static List<String> found(AttentionCase tested, int altered, IntUnaryOperator place) {
    var found = new ArrayList<String>();
    LocalRanks.run(
        RANKS,
        world -> {
          var number = new AtomicInteger();
          var context =
              new CaseContext(
                  world,
                  MemoryKind.AUTO,
                  tensor -> {
                    if (world.rank() == 1 && number.getAndIncrement() == altered) {
                      alter(tensor, place);
                    }
                  });
          try {
            tested.check(context);
          } catch (CaseFailed e) {
            synchronized (found) {
              found.add(String.valueOf(e.getMessage()));
            }
          }
        });
    return found;
  }

  private static void alter(TensorView tensor, IntUnaryOperator place) {
    var numbers = tensor.toFloats();
    numbers[place.applyAsInt(numbers.length)] += 1;
    var _ = tensor.copyFrom(numbers);
  }

  @ParameterizedTest
  @CsvSource({"0, query gradient", "1, key gradient", "2, value gradient", "3, output"})
  void oneWrongNumberIsFound(int altered, String name) {
    var cases =
        AttentionCase.table(AttentionCase.DTYPES, RANKS, 3).stream()
            .filter(each -> each.pass() == AttentionCase.Pass.BACKWARD)
            .filter(each -> each.spec().fused() == Fused.NONE)
            .toList();
    for (int i = 0; i < cases.size(); i += 7) {
      var tested = cases.get(i);
      assertThat(found(tested, -1)).isEmpty();
      assertThat(found(tested, altered))
          .singleElement()
          .asString()
          .contains(tested.text(), "rank 1/2", "round 0: " + name);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"QUERY_GRADIENT", "KEY_GRADIENT", "VALUE_GRADIENT"})
  void oneWrongColumnOfAFusedTensorIsFound(Part part) {
    var tested =
        AttentionCase.table(List.of(DType.FP32), RANKS, 3).stream()
            .filter(each -> each.pass() == AttentionCase.Pass.BACKWARD)
            .filter(each -> each.spec().fused() == Fused.QKV)
            .findFirst()
            .orElseThrow();
    assertThat(found(tested, 0, _ -> PartColumns.of(tested.spec(), part).first()))
        .singleElement()
        .asString()
        .contains(tested.text(), "rank 1/2", "round 0: " + part);
  }

  @Test
  void aGradientOfOtherBitsInASecondRunIsFound() {
    var tested =
        AttentionCase.quick(AttentionCase.DTYPES, RANKS, 3).stream()
            .filter(each -> each.pass() == AttentionCase.Pass.DETERMINISTIC)
            .findFirst()
            .orElseThrow();
    assertThat(found(tested, -1)).isEmpty();
    assertThat(found(tested, 0))
        .singleElement()
        .asString()
        .contains(tested.text(), "rank 1/2", "gradient 0 of a second run");
  }

  @ParameterizedTest
  @CsvSource({"1, 5", "2, 5", "3, 5", "4, 6", "6, 6"})
  void everyMethodHasEveryPassOfEveryTable(int ranks, int methods) {
    int passes = 2 * AttentionCase.Pass.values().length * methods;
    assertThat(
            AttentionCase.quick(AttentionCase.DTYPES, ranks, 1).stream()
                .map(each -> each.what() + each.method()))
        .hasSizeGreaterThanOrEqualTo(passes)
        .satisfies(all -> assertThat(all.stream().distinct()).hasSize(passes));
    assertThat(
            AttentionCase.table(AttentionCase.DTYPES, ranks, 1).stream()
                .map(each -> each.what() + each.method() + each.dtype() + each.tuning().transport())
                .distinct())
        .hasSize(passes * AttentionCase.DTYPES.size() * COPYING);
    assertThat(AttentionCase.missing(ranks)).hasSize(methods == 5 ? 6 : 0);
  }
}
