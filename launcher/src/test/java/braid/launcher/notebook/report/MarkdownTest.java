package braid.launcher.notebook.report;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class MarkdownTest {
  @TempDir Path folder;

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "# A `B`|<h3>A <code>B</code></h3>",
        "**bold** and *it*, 2 * 3 * 4|<p><strong>bold</strong> and <em>it</em>, 2 * 3 * 4</p>",
        "`**a** <b>`|<p><code>**a** &lt;b&gt;</code></p>",
        "[next](02.ipynb) [web](https://a.b)|<p>next <a rel=\"noreferrer noopener\""
            + " href=\"https://a.b\">web</a></p>",
        "[x](javascript:alert)|<p>x</p>",
        "<script>|<p>&lt;script&gt;</p>",
        "a <b onclick=x>|<p>a &lt;b onclick=x&gt;</p>",
        "[x](https://a.b/'\"><script>')|<p><a rel=\"noreferrer noopener\""
            + " href=\"https://a.b/'&quot;&gt;&lt;script&gt;'\">x</a></p>",
        "![two *dots*](data:image/png;base64,AA==)|<p><img src=\"data:image/png;base64,AA==\""
            + " alt=\"two dots\" /></p>",
        "![two *dots*](https://a.b/c.png)|<p>two <em>dots</em></p>",
        "![x](data:text/html;base64,AA==)|<p>x</p>",
        "![x](attachment:a.png)|<p>x</p>",
        "![x](javascript:alert)|<p>x</p>",
        "costs $1 \\ 2 [a$1](x)|<p>costs $1 \\ 2 a$1</p>",
      })
  void aLineIsRead(String markdown, String html) {
    assertThat(Markdown.html(markdown)).isEqualTo(html + "\n");
  }

  @Test
  void blocksAreRead() {
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
            <pre><code class="language-java">int m = 1; // # no heading
            </code></pre>
            <table>
            <thead>
            <tr>
            <th>x</th>
            <th align="right">y</th>
            </tr>
            </thead>
            <tbody>
            <tr>
            <td>1</td>
            <td align="right"><code>2</code></td>
            </tr>
            </tbody>
            </table>
            """);
  }

  @Test
  void listsWithinListsAreRead() {
    assertThat(
            Markdown.html(
                """
                1. a
                   - b

                     c
                   - d
                2. e
                """))
        .isEqualToIgnoringWhitespace(
            "<ol><li>a<ul><li><p>b</p><p>c</p></li><li><p>d</p></li></ul></li><li>e</li></ol>");
  }

  @Test
  void anImageOfTheCellIsShown() {
    var attachments =
        JsonParser.parseString(
            """
            {"a.png": {"image/png": "AA\n=="}, "b": {"text/html": "AA=="}, "c": 1, "d": {}}
            """);
    assertThat(Markdown.html("![x](attachment:a.png)", attachments.getAsJsonObject(), folder))
        .isEqualTo("<p><img src=\"data:image/png;base64,AA==\" alt=\"x\" /></p>\n");
    assertThat(
            Markdown.html(
                "![b](attachment:b) ![c](attachment:c) ![d](attachment:d)",
                attachments.getAsJsonObject(),
                folder))
        .isEqualTo("<p>b c d</p>\n");
  }

  @Test
  void embedsImageFilesOfTheNotebooksFolderOnly() throws IOException {
    var notebooks = Files.createDirectories(folder.resolve("notebooks/my pictures"));
    Files.write(notebooks.resolve("a.PNG"), new byte[] {0});
    Files.write(folder.resolve("secret.png"), new byte[] {0});
    Files.createSymbolicLink(folder.resolve("notebooks/link.png"), folder.resolve("secret.png"));
    var beside = folder.resolve("notebooks");
    var none = new JsonObject();
    assertThat(Markdown.html("![x](my%20pictures/a.PNG)", none, beside))
        .isEqualTo("<p><img src=\"data:image/png;base64,AA==\" alt=\"x\" /></p>\n");
    for (var other :
        List.of("../secret.png", "link.png", "missing.png", "a%zz.png", "file:///a.png", "x.txt")) {
      assertThat(Markdown.html("![x](" + other + ")", none, beside))
          .as(other)
          .isEqualTo("<p>x</p>\n");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "text, ''",
    "'text\n\n## The *first* `m` & more\n\n# second', The first m & more",
    "'Set\n===', Set",
    "'#', ''",
    "'- # in a list', ''"
  })
  void theFirstHeadingIsFound(String markdown, String heading) {
    assertThat(Markdown.heading(markdown).orElse("")).isEqualTo(heading);
  }

  /// Neither the stack nor the time gives out: work that grows with the square of the length would
  /// end at the test's time limit.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "> ",
        "- ",
        "1. ",
        "*a **a ",
        "*a_ ",
        "[",
        "![",
        "[a](",
        "`",
        "<",
        "<!--",
        "\\",
        "| a ",
        "# ",
        "&",
        "![a][",
        "[a]: b\n",
        "- a\n  ",
        "```\n",
        "a\n|-|\n",
        "<b>",
        "**"
      })
  void beginningsWithoutEndsAreRead(String piece) {
    assertThat(Markdown.html(piece.repeat(200_000 / piece.length()))).isNotNull();
    assertThat(Markdown.html(piece.repeat(1_000) + "`" + "\n".repeat(1_000) + "*")).isNotEmpty();
  }
}
