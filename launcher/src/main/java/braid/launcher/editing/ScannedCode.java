package braid.launcher.editing;

/// Java text with everything that is not code made blank, character for character: what stands in
/// comments and quotes must be taken neither for names nor for brackets.
///
/// @param inCode whether what would be written next is code
/// @param open brackets that are open at the end
record ScannedCode(String code, boolean inCode, int open) {
  private enum In {
    CODE,
    LINE_COMMENT,
    COMMENT,
    STRING,
    CHARACTER,
    TEXT_BLOCK
  }

  static ScannedCode of(String source) {
    var code = new StringBuilder(source);
    var in = In.CODE;
    int open = 0;
    int at = 0;
    while (at < source.length()) {
      int length = 1;
      if (in == In.CODE) {
        in = begun(source, at);
        length = in == In.TEXT_BLOCK ? 3 : in == In.CODE || in == In.STRING ? 1 : width(in);
        open += in == In.CODE ? bracket(source.charAt(at)) : 0;
        if (in != In.CODE) {
          blank(code, at, length);
        }
      } else {
        var before = in;
        length = source.charAt(at) == '\\' && isQuoted(in) ? 2 : ended(source, at, in);
        in = length < 0 ? In.CODE : before;
        length = Math.max(1, Math.abs(length));
        blank(code, at, length);
      }
      at += length;
    }
    return new ScannedCode(code.toString(), in == In.CODE, Math.max(0, open));
  }

  private static boolean isQuoted(In in) {
    return in == In.STRING || in == In.CHARACTER || in == In.TEXT_BLOCK;
  }

  private static int width(In in) {
    return in == In.CHARACTER ? 1 : 2;
  }

  private static In begun(String source, int at) {
    if (source.startsWith("//", at)) {
      return In.LINE_COMMENT;
    }
    if (source.startsWith("/*", at)) {
      return In.COMMENT;
    }
    if (source.startsWith("\"\"\"", at)) {
      return In.TEXT_BLOCK;
    }
    return switch (source.charAt(at)) {
      case '"' -> In.STRING;
      case '\'' -> In.CHARACTER;
      default -> In.CODE;
    };
  }

  /// How many characters to go on by; negative where they end what they are in. A quote that is
  /// open at the end of its line ends there: nothing else can be meant.
  private static int ended(String source, int at, In in) {
    char next = source.charAt(at);
    return switch (in) {
      case LINE_COMMENT -> next == '\n' ? -1 : 1;
      case COMMENT -> source.startsWith("*/", at) ? -2 : 1;
      case STRING -> next == '"' || next == '\n' ? -1 : 1;
      case CHARACTER -> next == '\'' || next == '\n' ? -1 : 1;
      case TEXT_BLOCK -> source.startsWith("\"\"\"", at) ? -3 : 1;
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

  private static void blank(StringBuilder code, int at, int length) {
    for (int i = at; i < Math.min(at + length, code.length()); i++) {
      if (code.charAt(i) != '\n') {
        code.setCharAt(i, ' ');
      }
    }
  }
}
