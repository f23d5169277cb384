package braid.launcher.notebook.report;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.Sweep;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Execution(ExecutionMode.CONCURRENT)
class SafeHtmlTest {
  private static final String TABLE =
      "<table style=\"border-collapse:collapse\"><thead><tr><th style=\"padding:2px 10px;"
          + "text-align:right\">m<br><span>integer</span></th></tr></thead>"
          + "<tbody><tr><td>&lt;8&gt; &amp; more</td></tr></tbody></table>";

  @Test
  void aTableStaysAsItIs() {
    assertThat(SafeHtml.of(TABLE)).isEqualTo(TABLE);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "<script>alert(1)</script>",
        "<SCRIPT src=//x>",
        "<scr<!-- -->ipt>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<p onclick='alert(1)'>text</p>",
        "<a href=\"javascript:alert(1)\">x</a>",
        "<a href=\" javascript:alert(1)\">x</a>",
        "<a href='&#106;avascript:alert(1)'>x</a>",
        "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
        "<svg onload=alert(1)><script>alert(1)</script></svg>",
        "<style>@import url(//x);</style>",
        "<link rel=stylesheet href=//x>",
        "<meta http-equiv=refresh content=0>",
        "<form action=//x><input name=a></form>",
        "<object data=x></object><embed src=x>",
        "<p style=\"background:url(//x)\">text</p>",
        "<p style=\"position:fixed;top:0\">text</p>",
        "<img src=\"http://x/y.png\">",
        "<img src=\"data:text/html;base64,AAAA\">",
        "<script>",
        "<img/src=x/onerror=alert(1)//",
        "<p title='\"><script>alert(1)</script>'>text</p>",
        "<math><mtext><script>alert(1)</script></mtext></math>",
        "<base href=//x>",
      })
  void nothingThatRunsOrLoadsIsLeft(String html) {
    var safe = SafeHtml.of(html);
    var decoded = safe.replaceAll("data:image/svg\\+xml;base64,[A-Za-z0-9+/=]+", "picture");
    var tags = decoded.replaceAll("&lt;.*?&gt;", "").replaceAll("title=\"[^\"]*\"", "");
    assertThat(tags)
        .doesNotContainIgnoringCase("<script")
        .doesNotContainPattern("(?i)<[^>]*\\bon[a-z]+=")
        .doesNotContainPattern("(?i)<(iframe|svg|style|link|meta|form|input|object|embed|base)")
        .doesNotContainPattern("(?i)(href|src)=\"(?!https?:|mailto:|picture)")
        .doesNotContain("url(", "position", "//x");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "a < b && c > d|a &lt; b &amp;&amp; c &gt; d",
        "<b>bold|<b>bold</b>",
        "</div></section>out|out",
        "<p>one<b>two</p>three|<p>one<b>two</b></p><b>three</b>",
        "<unknown>text</unknown>|text",
        "<table><tr><td colspan=2 title=\"a'b\">x</table>|<table><tbody><tr><td colspan=\"2\""
            + " title=\"a'b\">x</td></tr></tbody></table>",
        "<a href=https://a.b/?c=d>x</a>|<a href=\"https://a.b/?c=d\" rel=\"noreferrer"
            + " noopener\">x</a>",
        "<p style=\"color:red;position:fixed\">x</p>|<p style=\"color:red\">x</p>",
      })
  void theRemainingHtmlIsWrittenAnew(String html, String safe) {
    assertThat(SafeHtml.of(html)).isEqualTo(safe);
  }

  /// Attributes of megabytes, as charts in an output have, are read without a deep stack.
  @Test
  void largePicturesAreRead() {
    var picture = "<img src=\"data:image/png;base64," + "A".repeat(3_000_000) + "\">";
    assertThat(SafeHtml.of(picture)).isEqualTo(picture);
  }

  /// Time grows with the length: work that grows with its square would end at the test's time
  /// limit.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "<b>",
        "<b",
        "<b ",
        "<b '",
        "<b \"\"",
        "<b '\"' x",
        "<b></i>",
        "<",
        "<!",
        "<?",
        "<!-",
        "</b",
        "<svg></svg ",
        "<script>",
        "</script ",
        "<p title=\"x\" ",
      })
  void beginningsWithoutEndsAreReadInLinearTime(String piece) {
    var html = piece.repeat(Sweep.times(200_000, 1_000_000) / piece.length());
    assertThat(SafeHtml.of("<p>" + html).length()).isGreaterThan(0);
    assertThat(SafeHtml.of("<script>" + html)).isEmpty();
    assertThat(SafeHtml.of("<b>" + html + "<!--")).startsWith("<b>");
    assertThat(SafeHtml.of(html + "</i>")).doesNotContain("</i>");
  }

  @Test
  void aLongRefusedStyleIsRead() {
    var style = "color:" + " ".repeat(1_000_000) + "@";
    assertThat(SafeHtml.of("<p style=\"" + style + "\">x</p>")).isEqualTo("<p style=\"\">x</p>");
  }

  /// The expected elements are those that a browser makes of the same text.
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "a<! b|a",
        "a<!b>c<? d ?>e|ace",
        "a<!x<!-- b|a",
        "a<!-- > -->b|ab",
        "a<!-->b|ab",
        "a<b \" c <i>d</i>|a<b>d</b>",
        "<p title='>'>x</p>|<p title=\"&gt;\">x</p>",
        "<p title='\"' lang=\"'\">x|<p title=\"&quot;\" lang=\"'\">x</p>",
        "<i>1<b>2<i>3</b>4</i>5|<i>1<b>2<i>3</i></b><i>4</i>5</i>",
        "a<script>b</script c>d</script>e|ade",
        "a<script>b</scripts>c</SCRIPT >d|ad",
        "a<svg>b|a<img alt=\"picture\""
            + " src=\"data:image/svg+xml;base64,"
            + "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciPmI8L3N2Zz4=\">",
      })
  void tagsAndCommentsAreReadWithAndWithoutEnds(String html, String safe) {
    assertThat(SafeHtml.of(html)).isEqualTo(safe);
  }

  /// An image is XML: names keep their case, and everything that was open is closed.
  @Test
  void drawingElementsOfAnSvgAreKept() {
    var svg =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\"><style>.a{fill:red}</style>"
            + "<title>t</title><linearGradient id=\"g\"></linearGradient>"
            + "<svg><rect class=\"a\" style=\"fill:url(#g)\"></rect></svg>"
            + "<text>1 &lt; 2</text></svg>";
    var safe = SafeHtml.of("<div>" + svg + "</div>");
    var image = safe.replaceAll("<div><img alt=\"picture\" src=\"data:.*,(.*)\"></div>", "$1");
    assertThat(new String(Base64.getDecoder().decode(image), StandardCharsets.UTF_8))
        .isEqualToIgnoringWhitespace(svg);
  }
}
