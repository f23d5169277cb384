package braid.launcher.cell;

import braid.launcher.Nearest;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/// All magics there are: help, completion and messages have them from here.
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
      "run this cell in the front, where `profiles` holds what the ranks measured"),
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
      "show at most that much of what a cell puts out: its first and its last part"),
  CELL_TIME(Group.SHOWN, "%%time", "", "say how long this cell ran on the slowest rank"),
  TIME(Group.SHOWN, "%time", "CODE", "say how long that line ran on the slowest rank"),
  RANKS(
      Group.RANKS,
      "%ranks",
      "",
      "each rank: host, pid, device, state, memory, heartbeat, what it waits for"),
  RESTART(
      Group.RANKS, "%restart", "", "end all ranks and start new ones; what cells declared is gone"),
  LOAD(Group.CODE, "%load", "FILE", "run a .java or .jsh file as if its text stood here"),
  MAVEN(
      Group.CODE,
      "%maven",
      "g:a:v...",
      "add artifacts and what they need to the class path of compiler and ranks"),
  JARS(
      Group.CODE,
      "%jars",
      "PATH...",
      "add jars or folders to the class path of the compiler and of every rank"),
  WHO(Group.CODE, "%who", "", "what the cells have declared"),
  HELP(Group.CODE, "%help", "", "this text");

  private enum Group {
    WHERE("Where a cell runs (first lines of a cell)"),
    SHOWN("What is shown"),
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

  /// As it is typed, `%who`.
  public String spelling() {
    return spelling;
  }

  /// What may follow it, `0,2` or `all|first|diff`.
  public String arguments() {
    return arguments;
  }

  /// How it is typed and what it does, in one line.
  private String line() {
    return "%-24s %s".formatted((spelling + " " + arguments).strip(), does);
  }

  /// The magic that is typed so.
  public static Optional<MagicName> of(String typed) {
    return Arrays.stream(values()).filter(magic -> magic.spelling.equals(typed)).findFirst();
  }

  /// What a magic does, as `%help` says it.
  public static Optional<String> explain(String typed) {
    return of(typed).map(MagicName::line);
  }

  /// Whether it stands at the top of a cell and is about all of it.
  public boolean ofCell() {
    return spelling.startsWith(CELL_PREFIX);
  }

  /// All as they are typed, sorted.
  public static List<String> spellings() {
    return Arrays.stream(values()).map(MagicName::spelling).sorted().toList();
  }

  /// What to say to somebody who typed a magic that is none there.
  public static String unknown(String typed) {
    boolean ofCell = typed.startsWith(CELL_PREFIX);
    var alike =
        Arrays.stream(values()).filter(m -> m.ofCell() == ofCell).map(m -> m.spelling).toList();
    if (ofCell && alike.contains(typed)) {
      return typed + " is about a whole cell and must stand above its code";
    }
    return "there is no %s; did you mean %s? There are %s"
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
    return text + "A result is shown where the last line has no semicolon.\n";
  }

  /// "%output wants all, first or diff but got `some`; …" begins so.
  public static String words(List<String> names) {
    return names.stream().limit(names.size() - 1L).collect(Collectors.joining(", "))
        + " or "
        + names.getLast();
  }
}
