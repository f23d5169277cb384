package braid.launcher.cli;

import braid.model.BraidException;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.AutoComplete;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `braid completion`: prints the script by which a shell completes commands and options.
@Command(
    name = "completion",
    description = "Prints a script by which bash or zsh completes commands and options.",
    mixinStandardHelpOptions = true,
    footer = {
      "  source <(braid completion bash)",
      "  braid completion bash > ~/.local/share/bash-completion/completions/braid",
      "  source <(braid completion zsh)",
    })
final class CompletionCommand implements Callable<Integer> {
  private static final List<String> SHELLS = List.of("bash", "zsh");

  @Parameters(paramLabel = "SHELL", description = "bash or zsh.")
  private String shell = "";

  @Spec private CommandSpec spec = CommandSpec.create();

  /// One script serves both shells: it turns on bash's completion in zsh.
  @Override
  public Integer call() {
    if (!SHELLS.contains(shell)) {
      throw new BraidException(
          "the shell must be bash or zsh but was %s; try braid completion bash".formatted(shell));
    }
    var root = spec.root();
    var out = spec.commandLine().getOut();
    out.print(AutoComplete.bash(root.name(), root.commandLine()));
    out.flush();
    return 0;
  }
}
