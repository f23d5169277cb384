package braid.launcher.cli;

import braid.launcher.Nearest;
import braid.launcher.cli.home.Installation;
import braid.model.BraidException;
import java.util.ArrayList;
import java.util.List;
import java.util.SequencedMap;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `braid man`: prints the manual page of a command. A bundle has all pages as files.
@Command(
    name = "man",
    description = "Prints the manual page of a command, for man -l.",
    mixinStandardHelpOptions = true,
    footer = {
      "  braid man run | man -l -",
      "  braid man kernel install > ~/.local/share/man/man1/braid-kernel-install.1",
    })
final class ManCommand implements Callable<Integer> {
  @Parameters(
      paramLabel = "COMMAND",
      arity = "0..*",
      description = "The command, and its subcommand. Default: braid itself.")
  private List<String> command = new ArrayList<>();

  @Spec private CommandSpec spec = CommandSpec.create();

  /// Returns all pages, by file name.
  static SequencedMap<String, String> pages() {
    return ManPage.all(Braid.commandLine().getCommandSpec(), Installation.version());
  }

  @Override
  public Integer call() {
    var pages = pages();
    var name = "braid" + command.stream().map(word -> "-" + word).reduce("", String::concat);
    var page = pages.get(name + ".1");
    if (page == null) {
      throw new BraidException(
          "man needs a command of braid but there is no %s; did you mean %s?"
              .formatted(name, Nearest.to(name + ".1", pages.keySet()).replace(".1", "")));
    }
    var out = spec.commandLine().getOut();
    out.print(page);
    out.flush();
    return 0;
  }
}
