package braid.launcher.notebook.report;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MarkdownTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "# A `B`|<h3>A <code>B</code></h3>",
        "**bold** and *it*, 2*3*4|<p><strong>bold</strong> and <em>it</em>, 2*3*4</p>",
        "`**a** <b>`|<p><code>**a** &lt;b&gt;</code></p>",
        "[next](02.ipynb) [web](https://a.b)|<p>next <a rel=\"noreferrer noopener\""
            + " href=\"https://a.b\">web</a></p>",
        "[x](javascript:alert)|<p>x</p>",
        "<script>|<p>&lt;script&gt;</p>",
        "costs $1 \\ 2 [a$1](x)|<p>costs $1 \\ 2 a$1</p>",
      })
  void readsALine(String markdown, String html) {
    assertThat(Markdown.html(markdown)).isEqualTo(html + "\n");
  }

  @Test
  void readsBlocks() {
    assertThat(
            Markdown.html(
                """
                one
                line

                - a
                  b
                - c
                ```java
                int m = 1; // # no heading
                ```
                | x | y |
                |---|--:|
                | 1 | `2` |
                """))
        .isEqualTo(
            """
            <p>one
            line</p>
            <ul>
            <li>a
            b</li>
            <li>c</li>
            </ul>
            <pre class="code">int m = 1; // # no heading</pre>
            <table><thead><tr><th>x</th><th>y</th></tr></thead><tbody><tr><td>1</td><td><code>2</code></td></tr></tbody></table>
            """);
  }
}
