package braid.launcher.output;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.Host;
import braid.model.MimeBundle;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

@Execution(ExecutionMode.CONCURRENT)
class ResultMergerTest {
  private static final Map<Integer, MimeBundle> DIFFERENT =
      Map.of(1, MimeBundle.text("ten"), 0, MimeBundle.text("a\n<b>"));

  private static final List<Host> TWO =
      List.of(new Host("h1", List.of(0)), new Host("h<2>", List.of(1)));

  @Test
  void equalValuesOfSeveralHostsAreShownOnce() {
    var equal = Map.of(0, MimeBundle.text("x"), 1, MimeBundle.text("x"));
    assertThat(ResultMerger.merge(equal, OutputMode.DIFF, TWO).text()).isEqualTo("x");
    assertThat(ResultMerger.merge(equal, OutputMode.ALL, List.of()).text())
        .isEqualTo("[0] x\n[1] x");
  }

  @Test
  void differentValuesNameTheirRanks() {
    for (var hosts : List.of(List.<Host>of(), List.of(new Host("h1", List.of(0, 1))))) {
      var merged = ResultMerger.merge(DIFFERENT, OutputMode.DIFF, hosts);
      assertThat(merged.text()).isEqualTo("[0]\na\n<b>\n[1] ten");
      assertThat(merged.data().get(MimeBundle.HTML))
          .contains("<th>rank</th><th>value</th>", "<pre>a\n&lt;b&gt;</pre>")
          .doesNotContain("host");
    }
    assertThat(ResultMerger.merge(DIFFERENT, OutputMode.FIRST, TWO).text()).isEqualTo("a\n<b>");
  }

  @Test
  void ranksOfSeveralHostsNameThem() {
    var merged = ResultMerger.merge(DIFFERENT, OutputMode.DIFF, TWO);
    assertThat(merged.text()).isEqualTo("[0 on h1]\na\n<b>\n[1 on h<2>] ten");
    assertThat(merged.data().get(MimeBundle.HTML))
        .contains("<th>host</th>", "<td>0</td><td>h1</td>", "<td>1</td><td>h&lt;2&gt;</td>");
  }

  @Test
  void displaysNameTheirRankAndItsHostIfThereAreSeveral() {
    var shown = MimeBundle.text("x").with(MimeBundle.HTML, "<b>x</b>");
    var one = ResultMerger.labelled(1, List.of(new Host("h1", List.of(0, 1))), shown);
    assertThat(one.text()).isEqualTo("[1] x");
    assertThat(one.data().get(MimeBundle.HTML)).isEqualTo("<div>rank 1</div><b>x</b>");
    var two = ResultMerger.labelled(1, TWO, shown);
    assertThat(two.text()).isEqualTo("[1 on h<2>] x");
    assertThat(two.data().get(MimeBundle.HTML))
        .isEqualTo("<div>rank 1 on h&lt;2&gt;</div><b>x</b>");
  }
}
