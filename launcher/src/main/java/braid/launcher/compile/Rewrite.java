package braid.launcher.compile;

/// A change of a rejected snippet that may be what its author meant.
///
/// @param start first replaced character of the snippet
/// @param end the character after the last replaced one
/// @param reach character of the snippet from which on the changed code may have other errors
/// @param shown the suggestion as the user reads it
record Rewrite(int start, int end, int reach, String replacement, String shown) {
  String applied(String source) {
    return source.substring(0, start) + replacement + source.substring(end);
  }

  /// Returns where a position of the snippet is after the change.
  long moved(long position) {
    return position < end ? position : position + replacement.length() - (end - start);
  }
}
