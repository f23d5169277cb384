package braid.launcher.session;

import braid.launcher.cell.Cell;
import braid.launcher.output.OutputLimit;
import braid.launcher.output.OutputMode;
import braid.model.BraidException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// The `%%` lines at the beginning of a cell: where it runs, whether it is timed, and its output.
/// `body` is the cell with those lines blanked, so that line numbers stay the same.
record CellHeader(
    Placement placement,
    boolean timed,
    Optional<OutputMode> output,
    Optional<OutputLimit> limit,
    String body) {
  sealed interface Placement {
    record Everywhere() implements Placement {}

    record Ranks(List<Integer> chosen) implements Placement {}

    record Front() implements Placement {}
  }

  static CellHeader of(Cell cell, int ranks) throws MagicError {
    Placement placement = new Placement.Everywhere();
    boolean timed = false;
    var output = Optional.<OutputMode>empty();
    var limit = Optional.<OutputLimit>empty();
    var body = new StringBuilder(cell.source());
    while (true) {
      int position = 0;
      while (position < body.length() && Character.isWhitespace(body.charAt(position))) {
        position++;
      }
      if (!body.substring(position).startsWith("%%")) {
        return new CellHeader(placement, timed, output, limit, body.toString());
      }
      int end = body.indexOf("\n", position);
      end = end < 0 ? body.length() : end;
      var words = body.substring(position + 2, end).strip().split("\\s+", 2);
      var rest = words.length > 1 ? words[1] : "";
      switch (words[0]) {
        case "rank", "ranks" -> placement = new Placement.Ranks(parseRanks(rest, ranks));
        case "front" -> placement = new Placement.Front();
        case "time" -> timed = true;
        case "output" -> output = Optional.of(outputMode(rest));
        case "output-limit" -> limit = Optional.of(outputLimit(rest));
        default -> throw MagicError.unknown("%%" + words[0], body.substring(position, end));
      }
      body.replace(position, end, "");
    }
  }

  static OutputMode outputMode(String word) throws MagicError {
    return OutputMode.of(word.strip())
        .orElseThrow(
            () ->
                new MagicError(
                    "%%output wants all, first or diff but got `%s`; did you mean %s?"
                        .formatted(word.strip(), OutputMode.nearest(word.strip()))));
  }

  static OutputLimit outputLimit(String text) throws MagicError {
    try {
      return OutputLimit.parse(text);
    } catch (BraidException e) {
      throw new MagicError(String.valueOf(e.getMessage()));
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

  /// Returns the lowest rank that runs the cell.
  int first() {
    return placement instanceof Placement.Ranks(var chosen) ? chosen.getFirst() : 0;
  }
}
