package braid.launcher.cli;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.SequencedMap;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.HelpCommand;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/// Manual page of a command, written from its declaration, in the language of `man`.
final class ManPage {
  /// Width without line breaks; `man` breaks lines itself.
  private static final int WIDTH = 100_000;

  private static final String EXAMPLES = "Examples:";

  private final CommandSpec spec;
  private final String version;
  private final StringBuilder page = new StringBuilder();

  private ManPage(CommandSpec spec, String version) {
    this.spec = spec;
    this.version = version;
  }

  /// @param version Braid's version, for the foot of the page
  static String of(CommandSpec spec, String version) {
    return new ManPage(spec, version).write();
  }

  /// Returns the pages of a command and of all its subcommands, by file name: `braid-run.1`.
  static SequencedMap<String, String> all(CommandSpec root, String version) {
    var pages = new LinkedHashMap<String, String>();
    pages.put(name(root) + ".1", of(root, version));
    subcommands(root).forEach(each -> pages.putAll(all(each, version)));
    return pages;
  }

  private static List<CommandSpec> subcommands(CommandSpec spec) {
    return spec.subcommands().values().stream()
        .map(CommandLine::getCommandSpec)
        .filter(each -> !each.usageMessage().hidden())
        .filter(each -> !(each.userObject() instanceof HelpCommand))
        .toList();
  }

  /// Name of the page: `braid-run`.
  private static String name(CommandSpec spec) {
    return spec.qualifiedName("-");
  }

  private String write() {
    var usage = spec.usageMessage().width(WIDTH);
    macro("TH", name(spec).toUpperCase(Locale.ROOT), "1", "", "braid " + version, "Braid");
    section("NAME");
    line(name(spec) + " - " + firstSentence(text(usage.description())));
    section("SYNOPSIS");
    line(new Help(spec, Help.Ansi.OFF).synopsis(0).replaceAll("\\s+", " ").strip());
    section("DESCRIPTION");
    line(text(usage.description()));
    if (!spec.positionalParameters().isEmpty() || !spec.options().isEmpty()) {
      section("OPTIONS");
      spec.positionalParameters().forEach(each -> item(each.paramLabel(), each));
      spec.options().stream()
          .filter(each -> !each.hidden())
          .forEach(each -> item(names(each), each));
    }
    var subcommands = subcommands(spec);
    if (!subcommands.isEmpty()) {
      section("COMMANDS");
      for (var each : subcommands) {
        item(name(each) + "(1)", text(each.usageMessage().description()));
      }
    }
    if (!usage.exitCodeList().isEmpty()) {
      section("EXIT STATUS");
      usage.exitCodeList().forEach((code, meaning) -> item(code.strip(), meaning));
    }
    footer();
    if (spec.parent() != null) {
      section("SEE ALSO");
      line(name(spec.parent()) + "(1)");
    }
    return page.toString();
  }

  /// Writes the lines below the help text: examples as they are, anything else as a paragraph.
  private void footer() {
    var usage = spec.usageMessage();
    var heading = String.format(usage.footerHeading() == null ? "" : usage.footerHeading());
    heading
        .lines()
        .map(String::strip)
        .filter(each -> !each.isEmpty() && !each.equals(EXAMPLES))
        .forEach(this::paragraph);
    boolean examples = heading.contains(EXAMPLES);
    if (examples) {
      section("EXAMPLES");
      macro("nf");
    }
    Arrays.stream(usage.footer())
        .map(String::strip)
        .forEach(examples ? this::line : this::paragraph);
    if (examples) {
      macro("fi");
    }
  }

  private static String names(OptionSpec option) {
    var names = String.join(", ", option.names());
    return option.arity().max() == 0 ? names : names + " " + option.paramLabel();
  }

  private static String text(String[] description) {
    return Arrays.stream(description).map(String::format).collect(Collectors.joining(" "));
  }

  private static String firstSentence(String text) {
    int end = text.indexOf(". ");
    return (end < 0 ? text : text.substring(0, end)).replaceFirst("\\.$", "");
  }

  private void item(String label, ArgSpec argument) {
    item(label, text(argument.description()));
  }

  private void item(String label, String text) {
    macro("TP");
    page.append("\\fB").append(escaped(label)).append("\\fR\n");
    line(text);
  }

  private void paragraph(String text) {
    macro("PP");
    line(text);
  }

  private void section(String title) {
    page.append(".SH ").append(title).append('\n');
  }

  private void macro(String name, String... arguments) {
    var words = new ArrayList<>(List.of("." + name));
    for (var argument : arguments) {
      words.add('"' + escaped(argument) + '"');
    }
    page.append(String.join(" ", words)).append('\n');
  }

  /// Writes a line of text. A dot or an apostrophe at its start would be a macro.
  private void line(String text) {
    var escaped = escaped(text);
    page.append(escaped.matches("(?s)[.'].*") ? "\\&" : "").append(escaped).append('\n');
  }

  private static String escaped(String text) {
    return text.replace("\\", "\\e")
        .replace("-", "\\-")
        .replace("'", "\\(aq")
        .replace("\"", "\\(dq");
  }
}
