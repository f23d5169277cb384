package braid.launcher.notebook.check;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import org.jsoup.Jsoup;
import org.jsoup.nodes.Element;
import org.jsoup.select.Elements;

/// Names of the columns of each table in a text.
final class TableHeads {
  /// Tablesaw's rule between head and rows.
  private static final Pattern RULE = Pattern.compile("\\s*-{3,}[-|+\\s]*");

  private TableHeads() {}

  /// Of HTML tables: the first row that is made of `th` alone. The type of a column stands under
  /// its name, after a line break.
  static List<List<String>> html(String html) {
    return Jsoup.parseBodyFragment(html).select("table").stream()
        .map(table -> table.select("tr:has(> th):not(:has(> td))"))
        .map(rows -> rows.isEmpty() ? new Elements() : rows.getFirst().select("> th"))
        .map(names -> names.stream().map(TableHeads::name).toList())
        .toList();
  }

  private static String name(Element head) {
    return Jsoup.parseBodyFragment(head.html().split("<br", 2)[0]).text();
  }

  /// Of printed tables: the line above a rule, where it has names between bars.
  static List<List<String>> printed(String text) {
    var heads = new ArrayList<List<String>>();
    var lines = text.lines().toList();
    for (int i = 1; i < lines.size(); i++) {
      var above = lines.get(i - 1);
      if (RULE.matcher(lines.get(i)).matches() && above.contains("|")) {
        heads.add(
            Arrays.stream(above.split("\\|", -1))
                .map(String::strip)
                .filter(name -> !name.isEmpty())
                .toList());
      }
    }
    return heads;
  }
}
