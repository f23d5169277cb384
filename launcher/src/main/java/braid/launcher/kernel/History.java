package braid.launcher.kernel;

import braid.launcher.kernel.channels.MalformedMessage;
import braid.launcher.kernel.channels.Message;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/// Inputs and outputs of this kernel. Each kernel starts empty, so its only session is 1, which
/// requests may also call 0, the current one.
final class History {
  private static final int SESSION = 1;

  private record HistoryLine(int line, String input, String output) {}

  private final List<HistoryLine> entries = new ArrayList<>();

  synchronized void add(int line, String input) {
    entries.add(new HistoryLine(line, input, ""));
  }

  synchronized void answered(int line, String output) {
    entries.replaceAll(
        entry -> entry.line == line ? new HistoryLine(line, entry.input, output) : entry);
  }

  JsonObject answer(Message request) throws MalformedMessage {
    var accessType = request.text("hist_access_type", "tail");
    var found =
        switch (accessType) {
          case "range" -> range(request);
          case "tail" -> last(request.number("n", Integer.MAX_VALUE), copy());
          case "search" -> search(request);
          default ->
              throw new MalformedMessage(
                  "hist_access_type must be range, tail or search but was " + accessType);
        };
    boolean withOutput = request.flag("output", false);
    var history = new JsonArray();
    for (var entry : found) {
      history.add(tuple(entry, withOutput));
    }
    var content = new JsonObject();
    content.add("history", history);
    return content;
  }

  private List<HistoryLine> range(Message request) throws MalformedMessage {
    int session = request.number("session", 0);
    if (session != 0 && session != SESSION) {
      return List.of();
    }
    int start = request.number("start", 0);
    int stop = request.number("stop", Integer.MAX_VALUE);
    return copy().stream().filter(entry -> start <= entry.line && entry.line < stop).toList();
  }

  private List<HistoryLine> search(Message request) throws MalformedMessage {
    Predicate<String> matches = glob(request.text("pattern", "*")).asMatchPredicate();
    var found = new ArrayList<HistoryLine>();
    boolean unique = request.flag("unique", false);
    for (var entry : copy()) {
      if (matches.test(entry.input)) {
        if (unique) {
          found.removeIf(earlier -> earlier.input.equals(entry.input));
        }
        found.add(entry);
      }
    }
    return last(request.number("n", Integer.MAX_VALUE), found);
  }

  private synchronized List<HistoryLine> copy() {
    return List.copyOf(entries);
  }

  private static List<HistoryLine> last(int count, List<HistoryLine> entries) {
    return entries.subList(Math.max(0, entries.size() - Math.max(0, count)), entries.size());
  }

  private static Pattern glob(String pattern) {
    var regex = new StringBuilder();
    pattern
        .codePoints()
        .mapToObj(Character::toString)
        .map(
            character ->
                switch (character) {
                  case "*" -> ".*";
                  case "?" -> ".";
                  default -> Pattern.quote(character);
                })
        .forEach(regex::append);
    return Pattern.compile(regex.toString(), Pattern.DOTALL);
  }

  private static JsonArray tuple(HistoryLine entry, boolean withOutput) {
    var tuple = new JsonArray();
    tuple.add(SESSION);
    tuple.add(entry.line);
    if (withOutput) {
      var both = new JsonArray();
      both.add(entry.input);
      both.add(entry.output);
      tuple.add(both);
    } else {
      tuple.add(entry.input);
    }
    return tuple;
  }
}
