package braid.launcher.notebook.report;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class OutputHtmlTest {
  private static JsonObject stream(String text) {
    var output = new JsonObject();
    output.addProperty("output_type", "stream");
    output.addProperty("name", "stdout");
    output.addProperty("text", text);
    return output;
  }

  private static String shown(String data) {
    return OutputHtml.of(
        JsonParser.parseString(
                "{\"output_type\": \"display_data\", \"data\": {" + data.replace('\'', '"') + "}}")
            .getAsJsonObject());
  }

  @Test
  void overwrittenTextIsShownAsATerminalDoes() {
    assertThat(OutputHtml.of(stream("\u001b[31mred\u001b[0m <b>\r\n10 %\r20 %\rdone\nlast\u0007")))
        .isEqualTo("<pre class=\"stream\">red &lt;b&gt;\ndone\nlast\ufffd</pre>\n");
  }

  @Test
  void aLongTextIsCutAndMissingLinesAreCounted() {
    var text =
        IntStream.range(0, 50_000).mapToObj(i -> "line " + i).collect(Collectors.joining("\n"));
    var html = OutputHtml.of(stream(text));
    assertThat(html)
        .contains("line 0\n", "line 299\n", "49,400 lines left out", "line 49700\n", "line 49999<")
        .doesNotContain("line 300\n", "line 49699\n");
    var line = OutputHtml.of(stream("x".repeat(1_000_000)));
    assertThat(line).hasSizeLessThan(5_000).contains("x …</pre>");
  }

  @Test
  void theRichestSafeFormIsShown() {
    assertThat(shown("'text/plain':'t','text/html':['<b>h','</b>'],'image/png':'AAAA'"))
        .isEqualTo("<div class=\"rich\"><b>h</b></div>\n");
    assertThat(shown("'text/plain':'a \\\\'t','image/png':'AA\\nAA'".replace("\\\\'", "&")))
        .isEqualTo(
            "<div class=\"picture\"><img alt=\"a &amp;t\" src=\"data:image/png;base64,AAAA\"></div>\n");
    assertThat(shown("'text/plain':'t','image/svg+xml':'<svg></svg>'"))
        .startsWith("<div class=\"picture\"><img alt=\"t\" src=\"data:image/svg+xml;base64,");
    assertThat(shown("'text/plain':'<t>','application/javascript':'alert(1)'"))
        .isEqualTo("<pre>&lt;t&gt;</pre>\n");
  }
}
