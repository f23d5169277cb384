package braid.launcher.notebook.report;

import braid.launcher.notebook.Notebook;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;

/// Names of a notebook's code cells that survive edits of the code and new cells elsewhere: the
/// heading above for the first cell below it, `heading [id]` for the others. Without ids, as in old
/// notebooks, the others are numbered within their section.
final class CellNames {
  private CellNames() {}

  static List<String> of(Notebook notebook) {
    var names = new ArrayList<String>();
    var taken = new HashSet<String>();
    var heading = "";
    int inSection = 0;
    for (var cell : notebook.cells()) {
      if (cell.isMarkdown()) {
        var found = Markdown.heading(cell.source());
        if (found.isPresent()) {
          heading = found.get();
          inSection = 0;
        }
      }
      if (!cell.isCode()) {
        continue;
      }
      inSection++;
      var name = heading;
      if (heading.isEmpty() || !taken.add(heading)) {
        int number = inSection;
        var own = cell.id().orElseGet(() -> Integer.toString(number));
        name = heading.isEmpty() ? "cell " + own : "%s [%s]".formatted(heading, own);
        // Two sections of one heading, without ids.
        for (int copy = 2; !taken.add(name); copy++) {
          name = "%s [%s, %d]".formatted(heading, own, copy);
        }
      }
      names.add(name);
    }
    return names;
  }
}
