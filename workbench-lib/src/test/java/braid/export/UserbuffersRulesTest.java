package braid.export;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import braid.export.UserbuffersRules.Finding;
import braid.export.UserbuffersRules.Mode;
import braid.export.UserbuffersRules.Rule;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.ToNumberPolicy;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;

class UserbuffersRulesTest {
  private static final Gson GSON =
      new GsonBuilder().setObjectToNumberStrategy(ToNumberPolicy.LONG_OR_DOUBLE).create();

  static Object yaml(String text) {
    return new Load(LoadSettings.builder().build()).loadFromString(text);
  }

  /// Tables that Megatron-Bridge publishes, by name.
  private static Map<?, ?> published() {
    var stream =
        UserbuffersRulesTest.class.getResourceAsStream("/braid/export/megatron_bridge.json");
    try (var reader =
        new InputStreamReader(Objects.requireNonNull(stream), StandardCharsets.UTF_8)) {
      var document = GSON.fromJson(reader, Map.class);
      return (Map<?, ?>) Objects.requireNonNull(document.get("tables"));
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void allPublishedTablesPass() {
    assertThat(published()).hasSize(19);
    published()
        .forEach(
            (name, table) -> {
              boolean fp8 = name.toString().contains("_fp8_");
              var rules = UserbuffersRules.of(fp8 ? Mode.FP8 : Mode.NONE);
              assertThat(rules.check(table)).as(name.toString()).isEmpty();
              assertThat((Map<?, ?>) table).as(name.toString()).hasSizeGreaterThanOrEqualTo(8);
            });
  }

  @Test
  void publishedTablesBreakTheRulesOfCublasMp() {
    published()
        .forEach(
            (name, table) ->
                assertThat(UserbuffersRules.of(Mode.FP8).cublasMp().fatal(table))
                    .as(name.toString())
                    .extracting(Finding::rule)
                    .contains(Rule.CUBLASMP));
  }

  private static Stream<Arguments> mistakes() {
    return Stream.of(
        arguments(Rule.FORM, "qkv_fprop", "a table must map names of GEMMs"),
        arguments(Rule.FORM, "qkv_fprop: 4", "qkv_fprop: its keys must be a mapping but were 4"),
        arguments(
            Rule.MODES, "[{}, {}]", "must have a table for each of 1 quantization modes [NONE]"),
        arguments(Rule.GEMM, "qvk_fprop: {method: bulk}", "qvk_fprop: a name must be one of qkv"),
        arguments(Rule.KEY, "qkv_fprop: {num_sms: 4}", "qkv_fprop: a key must be one of aggregate"),
        arguments(Rule.VALUE, "qkv_fprop: {num_sm: 0}", "num_sm must be 1 or more but was 0"),
        arguments(Rule.VALUE, "qkv_fprop: {num_sm: 1.5}", "num_sm must be 1 or more but was 1.5"),
        arguments(Rule.VALUE, "qkv_fprop: {use_ce: 1}", "use_ce must be true or false but was 1"),
        arguments(
            Rule.VALUE, "qkv_fprop: {comm_priority: high}", "must be a whole number but was high"),
        arguments(Rule.METHOD, "qkv_fprop: {method: ring}", "method must be one of ring_exchange"),
        arguments(
            Rule.PIPELINED_ALL_GATHER,
            "fc1_fprop: {method: pipeline}",
            "fc1_fprop: pipeline is only for a reduce-scatter"),
        arguments(
            Rule.BULK, "fc2_fprop: {method: bulk}", "fc2_fprop: it needs the data that it commun"),
        arguments(Rule.BULK, "qkv_wgrad: {method: ring_exchange}", "method must be bulk but was"),
        arguments(Rule.EXTERNAL, "qkv_fprop: {method: external}", "method must not be external"),
        arguments(Rule.EXTERNAL, "proj_wgrad: {method: bulk}", "method must be external but was b"),
        arguments(
            Rule.EXTERNAL_BASE,
            "fc2_dgrad: {method: bulk}",
            "fc2_wgrad: it uses the ring_exchange of fc2_dgrad, whose method is bulk"),
        arguments(
            Rule.WGRAD_OF_FUSED_DGRAD,
            "{fc1_dgrad: {method: ring_exchange}, fc1_wgrad: {num_sm: 4}}",
            "fc1_wgrad: it has an entry although fc1_dgrad is ring_exchange, not bulk"),
        arguments(
            Rule.DIRECTION,
            "proj_fprop: {is_reduce_scatter: false}",
            "is_reduce_scatter must be true for pipeline but was false"),
        arguments(
            Rule.DIRECTION,
            "qkv_dgrad: {is_reduce_scatter: true}",
            "is_reduce_scatter must be false for bulk but was true"),
        arguments(
            Rule.ATOMIC_TYPE, "proj_fprop: {atomic_gemm: true}", "atomic_gemm needs FP8 but the"),
        arguments(
            Rule.ATOMIC_PAIR,
            "qkv_fprop: {atomic_gemm: true}",
            "atomic_gemm by ring_exchange needs the same of proj_fprop"),
        arguments(
            Rule.ATOMIC_PAIR,
            "{fc1_fprop: {aggregate: true}, fc2_fprop: {method: ring_exchange, atomic_gemm: true}}",
            "needs the same of fc1_fprop"),
        arguments(
            Rule.NO_EFFECT, "qkv_fprop: {num_splits: 4}", "num_splits has no effect on ring_exch"),
        arguments(Rule.NO_EFFECT, "proj_fprop: {use_ce: true}", "use_ce has no effect on pipeline"),
        arguments(Rule.NO_EFFECT, "qkv_wgrad: {aggregate: true}", "aggregate has no effect on bu"),
        arguments(Rule.NO_EFFECT, "qkv_dgrad: {atomic_gemm: false}", "atomic_gemm has no effect"),
        arguments(Rule.NO_EFFECT, "fc1_fprop: {fp8_buf: true}", "fp8_buf has no effect on ring"),
        arguments(
            Rule.NO_EFFECT,
            "fc1_fprop: {pipeline_rs_overlap_first_gemm: true}",
            "pipeline_rs_overlap_first_gemm has no effect on ring_exchange: only pipeline has it"));
  }

  @ParameterizedTest
  @MethodSource("mistakes")
  void aBrokenRuleIsNamed(Rule rule, String table, String message) {
    var findings = UserbuffersRules.of(Mode.NONE).check(yaml(table));
    assertThat(findings)
        .filteredOn(each -> each.rule() == rule)
        .singleElement()
        .extracting(Finding::text)
        .asString()
        .contains(message)
        .hasLineCount(1);
    assertThat(UserbuffersRules.of(Mode.NONE).fatal(yaml(table)))
        .extracting(Finding::rule)
        .matches(rules -> rules.contains(rule) == rule.isFatal());
  }

  @Test
  void everyRuleHasAMistake() {
    var broken =
        Stream.concat(
                mistakes().map(each -> each.get()[0]),
                Stream.of(Rule.CUBLASMP, Rule.FUSED_DGRAD_OF_MODES))
            .collect(Collectors.toSet());
    assertThat(broken).isEqualTo(Set.of(Rule.values()));
  }

  @Test
  void aMessageIsOneLine() {
    var table = Map.of("qkv\n_fprop", Map.of(), "fc1_fprop", Map.of("a\nb", 1, "method", "\n"));
    assertThat(UserbuffersRules.of().check(table))
        .hasSize(3)
        .allSatisfy(each -> assertThat(each.text()).hasLineCount(1));
  }

  @Test
  void anEmptyTablePasses() {
    assertThat(UserbuffersRules.of().check(Map.of())).isEmpty();
    assertThat(UserbuffersRules.of().cublasMp().check(Map.of())).isEmpty();
  }

  @Test
  void aListHasATableForEachMode() {
    var tables =
        yaml("[{qkv_fprop: {atomic_gemm: true}, proj_fprop: *p}, {}]".replace("*p", ATOMIC));
    assertThat(UserbuffersRules.of(Mode.FP8, Mode.NONE).check(tables)).isEmpty();
    assertThat(UserbuffersRules.of(Mode.NONE, Mode.FP8).check(tables))
        .extracting(Finding::rule)
        .containsOnly(Rule.ATOMIC_TYPE);
    assertThat(UserbuffersRules.of(Mode.NONE).check(List.of())).hasSize(1);
  }

  private static final String ATOMIC = "{method: ring_exchange, atomic_gemm: true}";

  @Test
  void aFusedDgradNeedsASingleMode() {
    var fused = yaml("qkv_dgrad: {method: ring_exchange}");
    assertThat(UserbuffersRules.of(Mode.FP8).check(fused)).isEmpty();
    assertThat(UserbuffersRules.of(Mode.FP8, Mode.NONE).check(fused))
        .singleElement()
        .satisfies(
            each -> {
              assertThat(each.rule()).isEqualTo(Rule.FUSED_DGRAD_OF_MODES);
              assertThat(each.text())
                  .isEqualTo(
                      "qkv_dgrad: method must be bulk with 2 quantization modes but was ring_exchange; take bulk, or one mode");
            });
  }

  @Test
  void aFusedDgradReplacesItsWgrad() {
    var fused = yaml("fc1_dgrad: {method: pipeline, num_splits: 4, fp8_buf: true}");
    assertThat(UserbuffersRules.of(Mode.FP8).check(fused)).isEmpty();
    assertThat(UserbuffersRules.of().cublasMp().check(yaml("qkv_dgrad: {num_sm: 4}"))).isEmpty();
  }
}
