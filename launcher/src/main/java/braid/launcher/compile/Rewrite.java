package braid.launcher.compile;

/// A change of a rejected snippet that may be what its author meant.
///
/// @param start first replaced character of the snippet
/// @param end the character after the last replaced one
/// @param reach character of the snippet from which on the changed code may have other errors
/// @param shown the suggestion as the user reads it
record Rewrite(int start, int end, int reach, String replacement, String shown) {
  /// Characters of the longest suggestion that is shown with its arguments.
  private static final int LONGEST_SHOWN = 80;

  /// Returns a rewrite that is shown with the rest of its line, unless that is long.
  static Rewrite inItsLine(Rejection rejection, int start, int end, int reach, String code) {
    var source = rejection.source();
    int newline = source.indexOf('\n', end);
    var line =
        (source.substring(source.lastIndexOf('\n', start - 1) + 1, start)
                + code
                + source.substring(end, newline < 0 ? source.length() : newline))
            .strip();
    return new Rewrite(start, end, reach, code, line.length() > LONGEST_SHOWN ? code : line);
  }

  /// Returns a rewrite of the rejected name.
  static Rewrite ofName(Rejection rejection, String replacement, String shown) {
    var range = rejection.nameRange();
    return new Rewrite(range[0], range[1], rejection.afterArguments(range[1]), replacement, shown);
  }

  /// Returns the rewrite of everything before a call's arguments.
  static Rewrite ofCall(Rejection rejection, String call) {
    var range = rejection.nameRange();
    int end = rejection.afterArguments(range[1]);
    var whole = call + rejection.source().substring(range[1], end);
    return new Rewrite(
        rejection.start(), range[1], end, call, whole.length() > LONGEST_SHOWN ? call : whole);
  }

  String applied(String source) {
    return source.substring(0, start) + replacement + source.substring(end);
  }

  /// Returns where a position of the snippet is after the change.
  long moved(long position) {
    return position < end ? position : position + replacement.length() - (end - start);
  }
}
