package braid.launcher.session;

import braid.launcher.cell.Cell;
import java.util.ArrayList;
import java.util.List;

/// The `%%` lines a cell may begin with: where it runs, and whether it is timed. `body` is the cell
/// with those lines left empty, so that line numbers stay what they are.
record CellHeader(Where where, boolean timed, String body) {
  sealed interface Where {
    record Everywhere() implements Where {}

    record Ranks(List<Integer> chosen) implements Where {}

    record Front() implements Where {}
  }

  static CellHeader of(Cell cell, int ranks) throws MagicError {
    Where where = new Where.Everywhere();
    boolean timed = false;
    var body = new StringBuilder(cell.source());
    while (true) {
      int at = 0;
      while (at < body.length() && Character.isWhitespace(body.charAt(at))) {
        at++;
      }
      if (!body.substring(at).startsWith("%%")) {
        return new CellHeader(where, timed, body.toString());
      }
      int end = body.indexOf("\n", at);
      end = end < 0 ? body.length() : end;
      var words = body.substring(at + 2, end).strip().split("\\s+", 2);
      var rest = words.length > 1 ? words[1] : "";
      switch (words[0]) {
        case "rank", "ranks" -> where = new Where.Ranks(parseRanks(rest, ranks));
        case "front" -> where = new Where.Front();
        case "time" -> timed = true;
        default ->
            throw new MagicError(
                "unknown cell magic %%"
                    + words[0]
                    + "; there are %%rank 0,2  %%front  %%time (%help)");
      }
      body.replace(at, end, "");
    }
  }

  private static List<Integer> parseRanks(String text, int ranks) throws MagicError {
    var chosen = new ArrayList<Integer>();
    for (var part : text.split(",", -1)) {
      var ends = part.strip().split("-", -1);
      try {
        int first = Integer.parseInt(ends[0].strip());
        int last = ends.length == 2 ? Integer.parseInt(ends[1].strip()) : first;
        for (int rank = first; rank <= last; rank++) {
          chosen.add(rank);
        }
        if (ends.length > 2 || first > last) {
          throw new NumberFormatException();
        }
      } catch (NumberFormatException e) {
        throw new MagicError("%%rank wants ranks like 0,2 or 1-3 but got `" + text + "`");
      }
    }
    for (int rank : chosen) {
      if (rank < 0 || rank >= ranks) {
        throw new MagicError("%%rank: ranks are 0.." + (ranks - 1) + " but " + rank + " was named");
      }
    }
    return chosen.stream().distinct().sorted().toList();
  }

  boolean runsOn(int rank) {
    return switch (where) {
      case Where.Everywhere() -> true;
      case Where.Ranks(var chosen) -> chosen.contains(rank);
      case Where.Front() -> rank == 0;
    };
  }
}
