package braid.launcher.notebook.check;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Column names of each table in a text.
final class TableHeads {
  private static final Pattern TABLE = Pattern.compile("(?is)<table\\b.*?</table>");
  private static final Pattern ROW = Pattern.compile("(?is)<tr\\b.*?(?=<tr\\b|</tr>|</thead>)");
  private static final Pattern HEAD = Pattern.compile("(?is)<th\\b[^>]*>(.*?)(?=</th>|<th\\b|$)");
  private static final Pattern CELL = Pattern.compile("(?is)<td\\b");

  /// Type below a column's name, which is not part of it.
  private static final Pattern UNDER_THE_NAME = Pattern.compile("(?is)<br\\b.*");

  private static final Pattern TAG = Pattern.compile("<[^>]*>");

  /// Tablesaw's line between head and rows.
  private static final Pattern RULE = Pattern.compile("\\s*-{3,}[-|+\\s]*");

  private TableHeads() {}

  /// Returns the heads of HTML tables: the first row with only `th` cells.
  static List<List<String>> html(String html) {
    var heads = new ArrayList<List<String>>();
    for (var table = TABLE.matcher(html); table.find(); ) {
      heads.add(head(ROW.matcher(table.group())));
    }
    return heads;
  }

  private static List<String> head(Matcher rows) {
    while (rows.find()) {
      var row = rows.group();
      var names = HEAD.matcher(row).results().map(found -> name(found.group(1))).toList();
      if (!names.isEmpty() && !CELL.matcher(row).find()) {
        return names;
      }
    }
    return List.of();
  }

  private static String name(String html) {
    var text = TAG.matcher(UNDER_THE_NAME.matcher(html).replaceAll("")).replaceAll("");
    return text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
        .strip();
  }

  /// Returns the heads of printed tables: the line above a rule, if it has names between bars.
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
