package braid;

import braid.internal.selftest.PipelineCase;
import braid.internal.selftest.PipelineCases;
import braid.internal.selftest.Sweep;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The contract of every pipeline, on ranks of every kind.
abstract class PipelineContract {
  /// Checks all cases on a number of ranks.
  abstract void check(int ranks, List<PipelineCase> cases) throws Exception;

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void everyCellOfTheTableInEveryTypeAndSize(int ranks) throws Exception {
    check(ranks, Sweep.oneOf(6, PipelineCases.table(Capabilities.host(), ranks)));
  }

  @ParameterizedTest
  @EnumSource(Pattern.class)
  void theHostMultipliesEveryTwoTypes(Pattern pattern) throws Exception {
    check(2, Sweep.oneOf(3, PipelineCases.mixed(pattern)));
  }

  /// 4 ranks are two groups of two, 6 are two of three.
  @ParameterizedTest
  @ValueSource(ints = {4, 6})
  void twoLevelsInEveryTypeSizeFeatureAndOption(int ranks) throws Exception {
    var rows =
        Capabilities.host().stream().filter(row -> row.method() == Method.TWO_LEVEL).toList();
    var cases = new ArrayList<>(PipelineCases.table(rows, ranks));
    cases.addAll(PipelineCases.featuresAndOptions(rows, ranks));
    cases.removeIf(each -> each.tuning().method() != Method.TWO_LEVEL);
    check(ranks, Sweep.oneOf(6, cases));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void everyFeatureAndOption(int ranks) throws Exception {
    check(ranks, Sweep.oneOf(5, PipelineCases.featuresAndOptions(Capabilities.host(), ranks)));
  }
}
