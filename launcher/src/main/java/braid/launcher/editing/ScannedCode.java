package braid.launcher.editing;

/// Java text with comments and quoted text blanked, character by character, so that they are taken
/// neither for names nor for brackets.
///
/// @param inCode true if the next character would be code
/// @param open number of brackets that are open at the end
record ScannedCode(String code, boolean inCode, int open) {
  private enum State {
    CODE,
    LINE_COMMENT,
    COMMENT,
    STRING,
    CHARACTER,
    TEXT_BLOCK
  }

  static ScannedCode of(String source) {
    var code = new StringBuilder(source);
    var state = State.CODE;
    int open = 0;
    int position = 0;
    while (position < source.length()) {
      int length = 1;
      if (state == State.CODE) {
        state = begun(source, position);
        length =
            state == State.TEXT_BLOCK
                ? 3
                : state == State.CODE || state == State.STRING ? 1 : width(state);
        open += state == State.CODE ? bracket(source.charAt(position)) : 0;
        if (state != State.CODE) {
          blank(code, position, length);
        }
      } else {
        var before = state;
        length =
            source.charAt(position) == '\\' && isQuoted(state) ? 2 : ended(source, position, state);
        state = length < 0 ? State.CODE : before;
        length = Math.max(1, Math.abs(length));
        blank(code, position, length);
      }
      position += length;
    }
    return new ScannedCode(code.toString(), state == State.CODE, Math.max(0, open));
  }

  private static boolean isQuoted(State state) {
    return state == State.STRING || state == State.CHARACTER || state == State.TEXT_BLOCK;
  }

  private static int width(State state) {
    return state == State.CHARACTER ? 1 : 2;
  }

  private static State begun(String source, int position) {
    if (source.startsWith("//", position)) {
      return State.LINE_COMMENT;
    }
    if (source.startsWith("/*", position)) {
      return State.COMMENT;
    }
    if (source.startsWith("\"\"\"", position)) {
      return State.TEXT_BLOCK;
    }
    return switch (source.charAt(position)) {
      case '"' -> State.STRING;
      case '\'' -> State.CHARACTER;
      default -> State.CODE;
    };
  }

  /// Returns the number of characters to skip; negative if they end the current comment or literal.
  /// An open quote ends with its line.
  private static int ended(String source, int position, State state) {
    char next = source.charAt(position);
    return switch (state) {
      case LINE_COMMENT -> next == '\n' ? -1 : 1;
      case COMMENT -> source.startsWith("*/", position) ? -2 : 1;
      case STRING -> next == '"' || next == '\n' ? -1 : 1;
      case CHARACTER -> next == '\'' || next == '\n' ? -1 : 1;
      case TEXT_BLOCK -> source.startsWith("\"\"\"", position) ? -3 : 1;
      case CODE -> 1;
    };
  }

  private static int bracket(char character) {
    return switch (character) {
      case '{', '(' -> 1;
      case '}', ')' -> -1;
      default -> 0;
    };
  }

  private static void blank(StringBuilder code, int position, int length) {
    for (int i = position; i < Math.min(position + length, code.length()); i++) {
      if (code.charAt(i) != '\n') {
        code.setCharAt(i, ' ');
      }
    }
  }
}
