package braid;

import braid.internal.selftest.PipelineCase;
import braid.internal.selftest.PipelineCases;
import braid.internal.selftest.Sweep;
import braid.model.GemmSpec.Pattern;
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

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void everyFeatureAndOption(int ranks) throws Exception {
    check(ranks, Sweep.oneOf(5, PipelineCases.featuresAndOptions(Capabilities.host(), ranks)));
  }
}
