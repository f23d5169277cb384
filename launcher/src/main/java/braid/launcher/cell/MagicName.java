package braid.launcher.cell;

import braid.launcher.Nearest;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/// All magics, with the texts of help, completion and messages.
public enum MagicName {
  CELL_RANK(
      Group.WHERE,
      "%%rank",
      "0,2",
      "run this cell on some ranks only, 0,2 or 1-3; all of them load it"),
  CELL_FRONT(
      Group.WHERE,
      "%%front",
      "",
      "run this cell in the front, where `profiles` holds the ranks' measurements"),
  CELL_OUTPUT(Group.SHOWN, "%%output", "all", "as %output, for this cell alone"),
  OUTPUT(
      Group.SHOWN,
      "%output",
      "all|first|diff",
      "show every rank's lines and values, the lowest rank's alone, or others' where they differ"),
  CELL_OUTPUT_LIMIT(
      Group.SHOWN, "%%output-limit", "16MiB", "as %output-limit, for this cell alone"),
  OUTPUT_LIMIT(
      Group.SHOWN,
      "%output-limit",
      "16MiB",
      "limit the output of a cell: its first and its last part are shown"),
  CELL_TIME(Group.SHOWN, "%%time", "", "print how long this cell ran on the slowest rank"),
  TIME(Group.SHOWN, "%time", "CODE", "print how long that line ran on the slowest rank"),
  RANKS(
      Group.RANKS,
      "%ranks",
      "",
      "each rank: host, pid, device, state, memory, heartbeat, what it waits for"),
  RESTART(
      Group.RANKS, "%restart", "", "end all ranks and start new ones; all declarations are lost"),
  LOAD(Group.CODE, "%load", "FILE", "run a .java or .jsh file in place of this line"),
  MAVEN(
      Group.CODE,
      "%maven",
      "g:a:v...",
      "add artifacts and their dependencies to the class path of compiler and ranks"),
  JARS(
      Group.CODE,
      "%jars",
      "PATH...",
      "add jars or folders to the class path of the compiler and of every rank"),
  WHO(Group.CODE, "%who", "", "list the cells' declarations"),
  HELP(Group.CODE, "%help", "", "this text");

  private enum Group {
    WHERE("Placement of a cell (first lines of a cell)"),
    SHOWN("Output"),
    RANKS("Ranks"),
    CODE("Code and libraries");

    private final String title;

    Group(String title) {
      this.title = title;
    }
  }

  private static final String CELL_PREFIX = "%%";

  private final Group group;
  private final String spelling;
  private final String arguments;
  private final String does;

  MagicName(Group group, String spelling, String arguments, String does) {
    this.group = group;
    this.spelling = spelling;
    this.arguments = arguments;
    this.does = does;
  }

  /// Its spelling, `%who`.
  public String spelling() {
    return spelling;
  }

  /// Its arguments, `0,2` or `all|first|diff`.
  public String arguments() {
    return arguments;
  }

  /// Spelling, arguments and description in one line.
  private String line() {
    return "%-24s %s".formatted((spelling + " " + arguments).strip(), does);
  }

  /// Returns the magic of this spelling.
  public static Optional<MagicName> of(String typed) {
    return Arrays.stream(values()).filter(magic -> magic.spelling.equals(typed)).findFirst();
  }

  /// Returns the line of `%help` about a magic.
  public static Optional<String> explain(String typed) {
    return of(typed).map(MagicName::line);
  }

  /// Returns true if the magic stands at the top of a cell and applies to all of it.
  public boolean ofCell() {
    return spelling.startsWith(CELL_PREFIX);
  }

  /// All spellings, sorted.
  public static List<String> spellings() {
    return Arrays.stream(values()).map(MagicName::spelling).sorted().toList();
  }

  /// Returns the message for an unknown magic.
  public static String unknown(String typed) {
    boolean ofCell = typed.startsWith(CELL_PREFIX);
    var alike =
        Arrays.stream(values()).filter(m -> m.ofCell() == ofCell).map(m -> m.spelling).toList();
    if (ofCell && alike.contains(typed)) {
      return typed + " applies to a whole cell and must stand above its code";
    }
    return "%s is not a magic; did you mean %s? Magics are %s"
        .formatted(typed, Nearest.to(typed, alike), String.join(" ", alike));
  }

  public static String help() {
    var text = new StringBuilder();
    for (var group : Group.values()) {
      text.append(group.title).append('\n');
      for (var magic : values()) {
        if (magic.group == group) {
          text.append("  ").append(magic.line()).append('\n');
        }
      }
    }
    return text + "A result is shown if the last line has no semicolon.\n";
  }
}
